#!/usr/bin/env bash
# What recording adds to a request of Redis: its wall time for each request of `redis-benchmark -t get`
# with 20 connections, Redis saturating a CPU of its own. `bare` is nobody, `whylag` the recorder,
# `without` the program WHYLAG_WITHOUT, if it is set: one that records no requests. And what the BPF
# programs of this part alone take, by the kernel's own statistics of their runs.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

REQUESTS=${REQUESTS:-200000}
PORT=${PORT:-6397}
# Between the start of a recorder and the first request: it attaches, and finds who listens.
READY_S=1.5

begin requests "ns/request"
need redis-server redis-benchmark taskset cc
built run_stats

taskset -c "$BENCH_CPU" redis-server --port "$PORT" --save "" --appendonly no >"$TMP/redis.log" 2>&1 &
REDIS=$!
at_exit kill "$REDIS"
sleep 0.5

# Wall time of a request, from the requests per second of redis-benchmark.
requests() {
	taskset -c "$TOOL_CPUS" redis-benchmark -p "$PORT" -n "$REQUESTS" -c 20 -t get --csv 2>/dev/null |
		awk -F '","|"' '/GET/ { if ($3 > 0) printf "%.1f\n", 1e9 / $3 }'
}

# recorded PROGRAM: the same while it records Redis.
recorded() {
	local recorder figure
	rm -f "$TMP"/store*
	taskset -c "$TOOL_CPUS" "$1" --store "$TMP/store" record -p "$REDIS" >"$TMP/tool.log" 2>&1 &
	recorder=$!
	sleep "$READY_S"
	figure=$(requests)
	kill -INT "$recorder"
	wait "$recorder" || return
	echo "$figure"
}

measured() {
	case $1 in
	bare) requests ;;
	without) recorded "$WHYLAG_WITHOUT" ;;
	whylag) recorded "$WHYLAG" ;;
	esac
}

# What the three programs take for each request, ns. Timing them takes time itself, so it is not
# done in the rounds; they are there until the recorder ends.
of_the_part() {
	local recorder stats
	taskset -c "$TOOL_CPUS" "$WHYLAG" --store "$TMP/store" record -p "$REDIS" >"$TMP/tool.log" 2>&1 &
	recorder=$!
	sleep "$READY_S"
	mkfifo "$TMP/end"
	"$TMP/run_stats" on_data_ready on_received on_sent <"$TMP/end" >"$TMP/part" &
	stats=$!
	exec 3>"$TMP/end"
	requests >&2
	exec 3>&-
	wait "$stats"
	kill -INT "$recorder"
	wait "$recorder"
	awk -v n="$REQUESTS" '{ ns += $3 } END { if (NR) printf "%.0f\n", ns / n }' "$TMP/part"
}

subjects=(bare)
[[ -n ${WHYLAG_WITHOUT:-} ]] && subjects+=(without)
has_whylag && subjects+=(whylag)
run_rounds measured "${subjects[@]}"
table "${subjects[@]}"
if has_whylag; then
	goal "BPF programs of the part, each request" "$(of_the_part)" 1000 ns
fi
if [[ -n ${WHYLAG_WITHOUT:-} ]]; then
	more=$(awk -F '\t' '
		$2 == "without" { without[$1] = $3 }
		$2 == "whylag" { with[$1] = $3 }
		END { for (r in with) if (r in without) print with[r] - without[r] }' "$TSV" | median)
	goal "whylag beyond the recorder without the part" "$more" 1000 ns
fi
