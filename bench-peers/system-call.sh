#!/usr/bin/env bash
# What tools add to a system call, on `perf bench syscall basic` (getppid) pinned to one CPU. "whylag" is in
# its first 2 seconds, in which it records all calls; in "whylag-later" the same has gone on for 3 seconds,
# and there are too many to record them all.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

LOOPS=${LOOPS:-5000000}
# perf trace and strace cost a hundred times as much: fewer calls, for reference only.
SLOW_LOOPS=$((LOOPS / 100))
LONG_BEFORE=$((LOOPS * 5))

begin system-call "ns/call"
need perf bpftrace strace taskset cc
mount_tracefs
built empty
bench_is syscall basic

measured() {
	local seconds
	case $1 in
	perf-trace | strace) export LOOPS=$SLOW_LOOPS ;;
	*) export LOOPS ;;
	esac
	seconds=$(case $1 in
	bare) under "${BENCH[@]}" ;;
	empty) under "$TMP/empty" sys_enter sys_exit -- "${BENCH[@]}" ;;
	whylag) under "$WHYLAG" record --follow --store "$(mktemp -u "$TMP/store.XXXXXX")" -- "${BENCH[@]}" ;;
	whylag-later)
		export BEFORE=$LONG_BEFORE
		under "$WHYLAG" record --follow --store "$(mktemp -u "$TMP/store.XXXXXX")" -- "${BENCH[@]}"
		;;
	bpftrace) under bpftrace "$HERE/syscall-latency.bt" -c "${BENCH[*]}" ;;
	perf-trace) under perf trace -s -o "$TMP/trace.out" "${BENCH[@]}" ;;
	strace) under strace -c -f -o "$TMP/strace.out" "${BENCH[@]}" ;;
	esac) || return
	awk -v s="$seconds" -v n="$LOOPS" 'BEGIN { printf "%.1f\n", s * 1e9 / n }'
}

subjects=(bare empty bpftrace perf-trace strace)
has_whylag && subjects+=(whylag whylag-later)
run_rounds measured "${subjects[@]}"
table bare empty whylag whylag-later bpftrace perf-trace strace
for subject in whylag whylag-later; do
	compare "$subject" bpftrace 0.25
	compare "$subject" empty 2
done
