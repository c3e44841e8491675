#!/usr/bin/env bash
# Memory of the recorder, and what it lost, with 20,000 watched threads that make 200,000 events a
# second.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

THREADS=${THREADS:-20000}
# With many more of them the CPU caches, not the recorder, limit the rate.
ACTIVE=${ACTIVE:-2000}
PER_SECOND=${PER_SECOND:-200000}
SECONDS_EACH=${SECONDS_EACH:-10}

begin memory-bound "passes/s"
need jq cc
built threads

workload=("$TMP/threads" "$THREADS" "$ACTIVE" "$PER_SECOND" "$SECONDS_EACH")

# passes FILE: the rate the workload says it reached.
passes() {
	awk '/passes\/s$/ { print $(NF - 1); found = 1 } END { exit !found }' "$1"
}

# Prints the rate; says memory, events and losses on stderr and in a .txt next to the TSV.
under_whylag() {
	local store recorder peak_kib=0 kib json
	store=$(mktemp -u "$TMP/store.XXXXXX")
	"$WHYLAG" record --store "$store" -- "${workload[@]}" >"$TMP/whylag.out" 2>&1 &
	recorder=$!
	# VmHWM is a peak already: reading it now and then only misses what the last moment added.
	while kib=$(awk '/^VmHWM:/ { print $2 }' "/proc/$recorder/status" 2>/dev/null) && [[ $kib ]]; do
		peak_kib=$kib
		sleep 0.2
	done
	if ! wait "$recorder"; then
		tail -n 5 "$TMP/whylag.out" >&2
		return 1
	fi
	json=$TMP/whylag.json
	"$WHYLAG" explain --json --store "$store" >"$json"
	{
		echo "peak resident memory, by /proc: $((peak_kib / 1024)) MiB"
		echo "peak resident memory, by whylag: $(json_number peak_rss_bytes <"$json" |
			awk '{ printf "%.0f MiB", $1 / 1048576 }')"
		echo "events received: $(json_number events <"$json") in $SECONDS_EACH s and start-up"
		echo "store: $(du -sh "$store" | cut -f 1)"
		echo "losses: $(jq -c '[.. | objects | .losses? // empty][0] // "not in the JSON"' "$json")"
	} | tee -a "${TSV%.tsv}.txt" >&2
	rm -rf "$store"*
	passes "$TMP/whylag.out"
}

measured() {
	case $1 in
	bare) "${workload[@]}" >"$TMP/bare.out" && passes "$TMP/bare.out" ;;
	whylag) under_whylag ;;
	esac
}

subjects=(bare)
has_whylag && subjects+=(whylag)
run_rounds measured "${subjects[@]}"
table bare whylag
