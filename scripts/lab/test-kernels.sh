#!/usr/bin/env bash
# Records mysteries on other kernels, in virtual machines, and judges the recordings here
# (crates/whylag/tests/kernels.rs).
#
#     scripts/lab/test-kernels.sh            all kernels; writes docs/kernels.md; a quarter of an hour
#     scripts/lab/test-kernels.sh --short    two kernels and a few mysteries, for .ci/run
#
# What is fetched and made stays in target/lab, or where WHYLAG_LAB says.
set -euo pipefail

cd "$(dirname "$0")/../.."
lab=$(realpath -m "${WHYLAG_LAB:-target/lab}")
here=scripts/lab

# Programs whose fault takes no CPU time: what else is slow in a translated machine is not theirs.
short=(membarrier-global mmap-lock dns-timeout cgroup-throttle@crowd)
all=("${short[@]}" futex-convoy nagle-delack cgroup-throttle dirty-throttle file-lock fsync-journal
	ksm-cow swap-in listen-overflow rt-starvation stopped-or-traced@frozen tcp-rto udp-rcvbuf-stall)
# The short part takes what `make test` has built: loading is the kernel's work, in both.
case ${1:-} in
"") series=(5.15 6.1 6.8 6.12 6.18) mysteries=("${all[@]}") update=1 minutes=25 profile=release ;;
--short) series=(6.1 6.12) mysteries=("${short[@]}") update='' minutes=7 profile=debug ;;
*) echo "usage: test-kernels.sh [--short]" >&2; exit 2 ;;
esac
whylag=$(realpath "${CARGO_TARGET_DIR:-target}/$profile/whylag")

"$here/fetch.sh" "$lab" "${series[@]}"
"$here/image.sh" "$lab" "${series[@]}"
rm -rf "$lab/results"

# SERIES CPUS: its results are in LAB/results/SERIES-CPUS.
run() {
	local name=$1-$2 job
	job=$lab/job-$name
	rm -rf "$job"
	mkdir -p "$job/bin" "$job/mysteries"
	cp "$whylag" "$job/bin/"
	strip -g "$job/bin/whylag"
	cp -r mysteries/bin/. "$job/mysteries/"
	cc -O2 -pthread -o "$job/mysteries/cgroup-throttle@crowd" \
		crates/whylag/tests/programs/throttled_crowd.c
	cp "$here/job.sh" "$job/run.sh"
	for mystery in "${mysteries[@]}"; do
		case $mystery in
		*@*) echo "$mystery 3" ;;
		# ksmd has to see each page several times before the first fault.
		ksm-cow) echo "$mystery-faulty 20" ;;
		# Sockets are searched for in a part of the time that each search takes: seconds apart here.
		dns-timeout | tcp-rto) echo "$mystery-faulty 20" ;;
		*) echo "$mystery-faulty 2" ;;
		esac
	done >"$job/list"
	echo "== Linux $1 on $2 CPUs"
	MINUTES=$minutes "$here/vm.sh" "$lab" "$1" "$2" "$job" "$lab/results/$name" | sed "s/^/$name: /"
	rm -rf "$job"
}

# Each machine has one thread, so as many run at once as there are CPUs.
status=0
machines=()
for one in "${series[@]}"; do
	if ((${#machines[@]} >= $(nproc))); then
		wait "${machines[0]}" || status=1
		machines=("${machines[@]:1}")
	fi
	run "$one" 2 &
	machines+=($!)
done
for machine in "${machines[@]}"; do wait "$machine" || status=1; done
if [[ $update ]]; then
	mysteries=(futex-convoy yield-spin)
	run 6.12 8 || status=1
fi
((status == 0)) || echo "a virtual machine did not finish; what it left is judged all the same" >&2
WHYLAG_KERNELS=$lab/results WHYLAG_UPDATE_DOCS=$update \
	scripts/cargo.sh test --locked --workspace --test kernels -- --nocapture || status=1
exit "$status"
