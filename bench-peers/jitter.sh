#!/usr/bin/env bash
# Mean lateness of a 1 kHz timer: by `cyclictest --default-system` and by `whylag jitter`, at the
# same interval, priority and CPU; and what each says of 5 s in which it was stopped for 500 ms.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

SECONDS_EACH=${SECONDS_EACH:-5}
INTERVAL_US=1000
PRIORITY=80

begin jitter "us mean late"
need cyclictest jq
need_whylag

# whylag_jitter SECONDS WORD...: its JSON.
whylag_jitter() {
	"$WHYLAG" jitter --store "$(mktemp -u "$TMP/store.XXXXXX")" --json --interval "${INTERVAL_US}us" \
		--time "$1s" --cpu "$BENCH_CPU" "${@:2}" 2>"$TMP/tool.log"
}

# cyclic SECONDS WORD...: its line of figures, in ns.
cyclic() {
	cyclictest --default-system --nsecs --quiet --threads 1 --affinity "$BENCH_CPU" \
		--interval "$INTERVAL_US" --duration "$1" "${@:2}" 2>"$TMP/tool.log" | grep '^T:'
}

# Of whylag's JSON, and of cyclictest's line: ticks and mean lateness in us.
of_whylag() {
	jq -r '.series[0] | "\(.intended) \((.late.sum - .early.sum) / .intended / 1000)"'
}
of_cyclic() {
	sed -E 's/.*C: *([0-9]+).*Avg: *([0-9]+).*/\1 \2/' | awk '{ print $1, $2 / 1000 }'
}

measured() {
	case $1 in
	whylag-fifo) whylag_jitter "$SECONDS_EACH" --fifo "$PRIORITY" | of_whylag ;;
	cyclic-fifo) cyclic "$SECONDS_EACH" --priority "$PRIORITY" | of_cyclic ;;
	whylag-other) whylag_jitter "$SECONDS_EACH" | of_whylag ;;
	cyclic-other) cyclic "$SECONDS_EACH" --policy other | of_cyclic ;;
	whylag-stop) stopped_while whylag_jitter 5 | of_whylag ;;
	cyclic-stop) stopped_while cyclic 5 --policy other | of_cyclic ;;
	esac | if [[ $1 == *-stop ]]; then
		read -r figures
		echo "$figures $(cat "$TMP/length")" >>"$TMP/$1"
		echo "${figures#* }"
	else
		cut -d ' ' -f 2
	fi
}

# stopped_while FUNCTION WORD...: runs it, stops its tool for about 500 ms after 2 s, and leaves
# the true length of the stop in $TMP/length, in ms.
stopped_while() {
	"$@" >"$TMP/stopped.out" &
	local function=$! tool began
	sleep 2
	tool=$(pgrep -P "$function" -x 'whylag|cyclictest' || echo "$function")
	kill -STOP "$tool"
	began=$EPOCHREALTIME
	sleep 0.5
	kill -CONT "$tool"
	awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a) * 1000 }' >"$TMP/length"
	wait "$function"
	cat "$TMP/stopped.out"
}

# no_higher POLICY: the median over rounds of whylag's mean over cyclictest's.
no_higher() {
	awk -v w="whylag-$1" -v c="cyclic-$1" '
		{ v[$2, $1] = $3; round[$1] }
		END { for (r in round) if (((w, r) in v) && ((c, r) in v)) print v[w, r] / v[c, r] }' "$TSV" | median
}

run_rounds measured whylag-fifo cyclic-fifo whylag-other cyclic-other whylag-stop cyclic-stop
table whylag-fifo cyclic-fifo whylag-other cyclic-other whylag-stop cyclic-stop
for policy in fifo other; do
	goal "whylag's mean over cyclictest's, $policy" "$(no_higher "$policy")" 1 times
done
for tool in whylag cyclic; do
	awk -v t="$tool" -v usual="$(figures "$tool-other" | median)" '{
		# A tick for each ms of the stop, each late by what was left of it; the others as usual.
		truth = ($3 * ($3 + 1) / 2 * 1000 + (5000 - $3) * usual) / 5000
		printf "%s, stopped for %.1f ms of 5 s: %d of 5000 ticks, mean %.0f us; truth %.0f us: %s\n",
			t, $3, $1, $2, truth,
			($1 == 5000 && $2 > 0.98 * truth && $2 < 1.02 * truth) ? "met" : "not met"
	}' "$TMP/$tool-stop"
done
