#!/usr/bin/env bash
# What tools add to a context switch, on `perf bench sched pipe` pinned to one CPU. "whylag" is in its
# first 2 seconds, in which it records all calls; in "whylag-later" the same has gone on for 3 seconds, and
# there are too many to record them all.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

export LOOPS=${LOOPS:-200000}
LONG_BEFORE=$((LOOPS * 5))

begin context-switch "ns/switch"
need perf bpftrace taskset cc
mount_tracefs
built empty
bench_is sched pipe

# One loop is a message there and one back: on one CPU, two switches.
measured() {
	local seconds
	seconds=$(case $1 in
	bare) under "${BENCH[@]}" ;;
	empty) under "$TMP/empty" sched_switch sched_waking -- "${BENCH[@]}" ;;
	whylag) under "$WHYLAG" record --follow --store "$(mktemp -u "$TMP/store.XXXXXX")" -- "${BENCH[@]}" ;;
	whylag-later)
		export BEFORE=$LONG_BEFORE
		under "$WHYLAG" record --follow --store "$(mktemp -u "$TMP/store.XXXXXX")" -- "${BENCH[@]}"
		;;
	cheap) under "$WHYLAG" record --cheap --follow --store "$(mktemp -u "$TMP/store.XXXXXX")" -- "${BENCH[@]}" ;;
	bpftrace) under bpftrace "$HERE/offcputime.bt" -c "${BENCH[*]}" ;;
	perf-record) under perf record -q -a -g -e sched:sched_switch -o "$TMP/perf.data" -- "${BENCH[@]}" ;;
	esac) || return
	awk -v s="$seconds" -v n="$LOOPS" 'BEGIN { printf "%.1f\n", s * 1e9 / (2 * n) }'
}

subjects=(bare empty bpftrace perf-record)
# bpftrace is asked for switches alone; of whylag --cheap has those without the calls around them.
has_whylag && subjects+=(whylag whylag-later cheap)
run_rounds measured "${subjects[@]}"
table bare empty whylag whylag-later cheap bpftrace perf-record
for subject in whylag whylag-later cheap; do
	compare "$subject" bpftrace 0.2
	compare "$subject" perf-record 0.2
done
