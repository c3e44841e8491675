# make demo        see whylag solve a mystery: a program with a known fault, then with its fix
# make test        all tests; as root, because the recorder is tested on the real kernel
# make test-mysteries  the figures of mysteries, timers and ordinary programs; the table of the
#                  mysteries goes to docs/mysteries.md
# make test-shapes  whether the cause is found where it is behind a wait, or one of two: the programs
#                  in crates/whylag/tests/shapes, each built for glibc and for musl, about five minutes
# make test-servers  installs real servers (PostgreSQL, Redis, nginx, Java ...), puts faults into them and
#                  compares what whylag says with what they say of themselves; about six minutes; the
#                  table goes to docs/servers.md; ONLY=redis_keys,go_mutex plays those alone
# make test-kernels  records on other kernels in virtual machines (5.15 to 6.18, a quarter of an hour); what
#                  works on which goes to docs/kernels.md; SHORT=1 is the part that CI runs
# make check-aarch64  does it compile for aarch64? It was never tried there
# make build       target/release/whylag
# make lint        formatting, clippy, shellcheck, rustdoc, licences (deny.toml)
# make mysteries   the programs with known faults, in mysteries/bin
# make proofs      each mystery proven, and programs against themselves, into docs/proofs.md: hours; what was
#                  ended goes on where it stopped, FRESH=1 begins anew, ONLY=lazy-binding proves that alone
# make bench-peers side by side with bpftrace, perf, strace, cyclictest, ss, netstat, Otava and speedscope
# make bench-trace  the cost of a mark beside other tracers of Rust programs, and of being read
# make trace-kills  10,000 traced programs killed in mid-write
# make exchange     a traced exchange on the LMAX Disruptor under whylag, 20 s; FAULT=--slow-journal
#                   (or --chatty-clock, --garbage) gives it a fault to find
# make fuzz         the readers of trace files, ELF files and perf maps against RUNS hostile inputs,
#                   for SECONDS_EACH seconds at most
# make soak        20 minutes (or DURATION=120 seconds) of storms, small disks and kills under a recorder
# make page         builds the page's script and style anew (crates/page/web), which are committed
# make test-page    the page in Debian's chromium
# make stories      the report pages of the five stories' mysteries into target/stories, as root with a
#                   proof of each fix (8 minutes), and their pictures into docs/page
# make test-java    the tests of the Java tracer and of the exchange
# make new-cause ID=page-wait GROUP=memory  lays down a cause, its mystery, test and page
# make help        this list
# make install-deps  Debian packages that are missing (other targets do it by themselves)
#
# On Debian missing packages are installed when run as root; otherwise you are told which.

CARGO = scripts/cargo.sh
# Under sudo nothing in the checkout is to belong to root.
AS_USER = $(if $(SUDO_USER),sudo -u $(SUDO_USER))

WHYLAG = $(abspath $(or $(CARGO_TARGET_DIR),target))/release/whylag

all: build

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

install-deps:
	scripts/install-deps.sh build test lint

build:
	@scripts/install-deps.sh build
	@echo "== building (a few minutes the first time, one of them for libbpf-sys)"
	@$(CARGO) build --release --locked -p whylag

mysteries:
	@scripts/install-deps.sh build
	@$(AS_USER) $(MAKE) --no-print-directory -C mysteries

demo:
	@test "$$(id -u)" = 0 || { \
		scripts/install-deps.sh build; $(CARGO) --version >/dev/null; \
		echo "Recording with eBPF needs root. Run: sudo make demo" >&2; exit 1; }
	@$(MAKE) --no-print-directory build mysteries
	@scripts/demo.sh $(WHYLAG)

test:
	@scripts/install-deps.sh build test
	@$(AS_USER) $(MAKE) --no-print-directory -C mysteries
	@scripts/test.sh

test-mysteries:
	@scripts/install-deps.sh build test
	@$(AS_USER) $(MAKE) --no-print-directory -C mysteries
	@scripts/test-mysteries.sh

test-shapes:
	@scripts/install-deps.sh build test
	@AS_ROOT=1 WHYLAG_FIGURES=1 $(CARGO) test --locked --workspace --test shapes -- \
		--nocapture --test-threads 1

test-servers:
	@ONLY=$(ONLY) scripts/test-servers.sh

test-kernels:
	@scripts/install-deps.sh build lab
	@$(MAKE) --no-print-directory mysteries $(if $(SHORT),,build)
	@$(CARGO) test --locked --workspace --no-run --test kernels
	@scripts/lab/test-kernels.sh $(if $(SHORT),--short)

check-aarch64:
	@scripts/install-deps.sh build aarch64
	@$(AS_USER) scripts/check-aarch64.sh

lint:
	@scripts/install-deps.sh build lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	shellcheck -x .ci/run scripts/*.sh scripts/lab/*.sh bench-peers/*.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	scripts/deny.sh
	for fuzz in crates/*/fuzz/Cargo.toml; do \
		$(CARGO) metadata --locked --format-version 1 --manifest-path $$fuzz >/dev/null || exit; done

# Every mystery proven, faulty against fixed, and programs against themselves: hours, for a nightly.
proofs: build mysteries
	WHYLAG=$(WHYLAG) bench-peers/prove.sh --docs

bench-peers: build
	bench-peers/install.sh
	@failed=; for script in context-switch system-call overhead-servers start-up explain-million memory-bound \
		bench-verdict jitter sockets requests doctor series page; do \
		echo "== $$script"; \
		WHYLAG=$(WHYLAG) bench-peers/$$script.sh || failed="$$failed $$script"; \
	done; \
	test -z "$$failed" || { echo "without a result:$$failed" >&2; exit 1; }

bench-trace:
	@scripts/install-deps.sh build
	cd bench-peers/trace && CARGO_TARGET_DIR=$(dir $(WHYLAG))../trace ../../$(CARGO) bench --locked

trace-kills:
	@scripts/install-deps.sh build
	KILLS=10000 $(CARGO) test --release --locked -p whylag-trace --test kills -- --nocapture

exchange:
	@test "$$(id -u)" = 0 || { echo "Recording needs root. Run: sudo make exchange" >&2; exit 1; }
	@scripts/install-deps.sh build test java
	@$(MAKE) --no-print-directory build
	@$(AS_USER) $(MAKE) --no-print-directory -C mysteries bin/slow-clocksource.so
	@scripts/exchange.sh $(WHYLAG) $(FAULT)

fuzz:
	@scripts/install-deps.sh build test
	@RUNS=$(RUNS) SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz.sh

soak: build
	@test "$$(id -u)" = 0 || { echo "Recording needs root. Run: sudo make soak" >&2; exit 1; }
	@DURATION=$(DURATION) scripts/soak.sh $(WHYLAG)

new-cause:
	@scripts/install-deps.sh build
	@scripts/new-cause.sh "$(ID)" "$(GROUP)"

page:
	@scripts/install-deps.sh page
	@$(AS_USER) scripts/build-page.sh crates/page/web/dist

test-page:
	@scripts/install-deps.sh build page
	@scripts/test-page.sh

stories:
	@scripts/install-deps.sh build stories
	@scripts/stories.sh

test-java:
	@scripts/install-deps.sh java
	@scripts/test-java.sh

.PHONY: all help install-deps build mysteries demo test test-mysteries test-shapes test-servers test-kernels lint \
	bench-peers proofs bench-trace trace-kills exchange fuzz soak new-cause test-java page test-page stories check-aarch64
