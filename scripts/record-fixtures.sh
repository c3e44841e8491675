#!/usr/bin/env bash
# record-fixtures.sh [NAME...]: records the runs in crates/whylag/tests/fixtures anew, or only those
# named (futex-convoy-faulty ...). As root, on a machine that does nothing else: about 7 minutes for
# all. Prints what 'whylag explain' says of each; afterwards review the snapshots, as
# tests/recorded_runs.rs says. It builds target/release/whylag, unless WHYLAG names a built one: for
# one or two runs target/debug/whylag will do, whose recorder takes a little more time itself.
set -euo pipefail

cd "$(dirname "$0")/.."
fixtures=$PWD/crates/whylag/tests/fixtures
whylag=$(realpath -m "${WHYLAG:-${CARGO_TARGET_DIR:-target}/release/whylag}")
bin=$PWD/mysteries/bin
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-fixtures.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export WHYLAG_STORE=$folder/whylag.db
wanted=" $* "

((EUID == 0)) || { echo "Recording needs root. Run: sudo scripts/record-fixtures.sh" >&2; exit 1; }
[[ -n ${WHYLAG:-} ]] || make --no-print-directory build
make --no-print-directory mysteries

# Programs whose children are recorded, too.
follow=" core-dump huge-exit many-thread-vfork shm-attach slow-peer sysv-sem "
# KSM is off and there may be no swap, and tests change no setting of the system.
skipped=" ksm-cow swap-in "

# keep NAME VERB...: records with the verb, and keeps the run under this name.
keep() {
	local name=$1
	shift
	[[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
	rm -f "$WHYLAG_STORE"*
	"$whylag" "$@" >"$folder/printed" 2>&1 || { cat "$folder/printed" >&2; return 1; }
	"$whylag" export --format run -o "$fixtures/$name.whylag" 2>/dev/null
	printf '%-32s %s\n' "$name" "$("$whylag" explain | grep -m 1 -E '^(1\.|No )' || true)"
}

record_pair() {
	local id=$1 options=()
	[[ $follow != *" $id "* ]] || options=(--follow)
	keep "$id-faulty" record "${options[@]}" -- "$bin/$id-faulty" 2
	keep "$id-fixed" record "${options[@]}" -- "$bin/$id-fixed" 2
}

for program in mysteries/*/; do
	id=$(basename "$program")
	case $id in
	bin | healthy) ;;
	timer-proportional)
		keep "$id-faulty" jitter -- "$bin/$id-faulty" 6
		keep "$id-fixed" jitter -- "$bin/$id-fixed" 6
		;;
	timer-* | rt-throttling)
		keep "$id-faulty" jitter -- "$bin/$id-faulty" 4
		keep "$id-fixed" jitter -- "$bin/$id-fixed" 4
		;;
	lazy-binding)
		keep "$id-faulty" record -- "$bin/$id-faulty" 12 6
		keep "$id-fixed" record -- "$bin/$id-fixed" 2
		;;
	slow-clocksource)
		# The recorder has to see the host's slow clock, too.
		LD_PRELOAD=$bin/slow-clocksource.so keep "$id-faulty" record -- "$bin/slow-clocksource" 2
		keep "$id-fixed" record -- "$bin/slow-clocksource" 2
		;;
	*) [[ $skipped == *" $id "* ]] || record_pair "$id" ;;
	esac
done

keep healthy record -- "$bin/healthy" 2
cd "$folder"
awk 'BEGIN { for (i = 0; i < 400000; i++) printf "%x abc %d line %d\n", i * 40503 % 65521, i % 97, i }' >text
healthy() { keep "healthy-$1" record --follow -- sh -c "$2"; }
healthy sleeper "sleep 1"
healthy poller "perl -e 'for (1..100) { select undef, undef, undef, 0.01 }'"
healthy spinner "exec taskset -c 1 perl -e '\$t = time + 2; 1 while time < \$t'"
healthy compiler "cc -O3 -c $bin/../futex-convoy/program.c -o program.o"
healthy sort "sort --parallel=1 -k3 text >sorted; sort --parallel=1 -r text >sorted"
healthy gzip "gzip -c text >text.gz && gzip -dc text.gz | cmp - text"
healthy find "find /usr -name '*.so*' | wc -l; find /usr -size +1M | wc -l"
healthy perl "perl -e 'my %h; \$h{\$_ % 9973} .= chr(65 + \$_ % 26) for 1..900000; print scalar %h'"
healthy database "sqlite3 :memory: 'create table t (a, b); with recursive n(i) as (select 1 union all \
	select i + 1 from n where i < 300000) insert into t select i, i * 7 % 1000 from n; \
	select b, count(*), sum(a) from t group by b order by 3 limit 3;'"
