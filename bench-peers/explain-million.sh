#!/usr/bin/env bash
# Time to explain a run with a million outliers.
#
# They come from `perf bench sched pipe` recorded with a threshold of 1 us: each of its reads
# sleeps for longer than that. The recording is repeated, longer, until there are enough of them.
# The recorder shares the benchmark's CPU: with a CPU of its own it would be overrun, and lose most.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

WANTED=1000000
TRIES=4
export LOOPS=${LOOPS:-450000}

begin explain-million "s"
need perf taskset jq
need_whylag
bench_is sched pipe

outliers=0
for ((try = 1; try <= TRIES && outliers < WANTED; try++)); do
	STORE=$TMP/store.$try
	echo "recording $LOOPS round trips, try $try of $TRIES" >&2
	TOOL_CPUS=$BENCH_CPU under "$WHYLAG" record --threshold 1us --store "$STORE" -- "${BENCH[@]}" >/dev/null
	outliers=$("$WHYLAG" explain --json --store "$STORE" | json_number outlier_count)
	: "${outliers:=0}"
	echo "$outliers outliers, store of $(du -sh "$STORE" | cut -f 1)" >&2
	LOOPS=$((2 * LOOPS))
done
((outliers >= WANTED)) ||
	die "only $outliers outliers of $WANTED after $TRIES recordings; set LOOPS above $LOOPS"

measured() {
	case $1 in
	whylag) seconds_of "$WHYLAG" explain --store "$STORE" ;;
	whylag-json) seconds_of "$WHYLAG" explain --json --store "$STORE" ;;
	esac
}

run_rounds measured whylag whylag-json
table whylag whylag-json
goal "explaining $outliers outliers" "$(figures whylag | median)" 1 s
