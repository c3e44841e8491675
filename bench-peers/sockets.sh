#!/usr/bin/env bash
# What it costs to look at sockets every 20 ms while the host has 100,000 of them, and what that does
# to a program that makes sockets (the worker): whylag record of the worker, and of another process,
# so that the looking is all that is left; ss; netstat. In a network namespace of its own; the
# sockets are sockets.c's.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

SOCKETS=${SOCKETS:-100000}
# The worker's own, in SOCKETS, and those of the other process that whylag records.
OWN=${OWN:-1000}
SECONDS_EACH=${SECONDS_EACH:-3}

((EUID != 0)) || [[ -v INSIDE ]] || INSIDE=1 exec unshare --net -- "$0" "$@"
begin sockets "figure"
need cc jq ip taskset
built sockets
ip link set lo up
ulimit -n "$(ulimit -Hn)"

# started PIPE WORD...: starts it in the background ($!) and waits until it is ready.
started() {
	local line
	mkfifo "$1"
	"${@:2}" >"$1" &
	read -r line <"$1"
	[[ $line == ready ]] || die "${*:2}: did not start"
}

hold_all() {
	local left=$((SOCKETS - 2 * OWN)) each=$(($(ulimit -n) * 3 / 4)) number
	for ((number = 1; left > 0; number++)); do
		started "$TMP/holder$number" "$TMP/sockets" hold "$number" "$((left < each ? left : each))"
		at_exit kill "$!"
		left=$((left - each))
	done
	started "$TMP/other" "$TMP/sockets" hold 251 "$OWN"
	OTHER=$!
	at_exit kill "$OTHER"
	awk '$1 == "sockets:" { print "sockets in use:", $3 }' /proc/net/sockstat >&2
}

# seconds_used PID: CPU time of a process and of its children that ended.
seconds_used() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13 + $14 + $15) / hz }' \
		"/proc/$1/stat"
}

# seconds_looking PID: CPU time of whylag's thread that reads queues.
seconds_looking() {
	local comm
	for comm in "/proc/$1"/task/*/comm; do
		[[ $(<"$comm") != queues ]] || awk '{ print $1 / 1e9 }' "${comm%comm}schedstat"
	done
}

# looks_per_second: of the recorder at a socket that was there all the time.
looks_per_second() {
	"$WHYLAG" show --json --store "$TMP/store" | jq -r '
		[.sockets.queues[] | { inode: .socket.inode, looks, start_ns }] as $all
		| ([$all[].start_ns] | max - min) as $span
		| [$all | group_by(.inode)[] | map(select(.start_ns < ([$all[].start_ns] | max)) | .looks) | add]
		| max / $span * 1e9'
}

reader() {
	case $1 in
	bare) exec sleep 1000 ;;
	awake) while :; do :; done ;;
	whylag) exec "$WHYLAG" record --store "$TMP/store" -p "$2" 2>"$TMP/tool.log" ;;
	elsewhere) exec "$WHYLAG" record --store "$TMP/store" -p "$OTHER" 2>"$TMP/tool.log" ;;
	ss) exec "$TMP/sockets" repeat ss -autxn ;;
	netstat) exec "$TMP/sockets" repeat netstat -an ;;
	esac
}

# note ROUND SUBJECT.METRIC FIGURE
note() {
	[[ -z $3 ]] || printf '%s\t%s\t%s\n' "$@" >>"$TSV"
}

# share FROM TO: percent of a CPU over the time that was measured.
share() {
	awk -v a="$1" -v b="$2" -v s="$SECONDS_EACH" 'BEGIN { if (a != "") print 100 * (b - a) / s }'
}

# measure ROUND SUBJECT
measure() {
	local worker reader used looking median p99 max rate wall
	rm -rf "$TMP"/store* "$TMP/worker" "$TMP/go" "$TMP/tool.log"
	touch "$TMP/tool.log"
	mkfifo "$TMP/go" "$TMP/worker"
	# Open for both directions, so that nobody waits for the other side.
	exec 3<>"$TMP/go" 4<>"$TMP/worker"
	taskset -c "$BENCH_CPU" "$TMP/sockets" work "$OWN" "$SECONDS_EACH" <&3 >&4 &
	worker=$!
	read -r -u 4
	reader "$2" "$worker" 3>&- 4>&- >"$TMP/reader.out" &
	reader=$!
	taskset -acp "$TOOL_CPUS" "$reader" >/dev/null
	if [[ $2 == whylag || $2 == elsewhere ]]; then
		until grep -q recording "$TMP/tool.log"; do sleep 0.1; done
	fi
	sleep 0.5
	used=$(seconds_used "$reader") looking=$(seconds_looking "$reader")
	echo go >&3
	read -r -u 4 median p99 max
	note "$1" "$2.cpu" "$(share "$used" "$(seconds_used "$reader")")"
	note "$1" "$2.looking" "$(share "$looking" "$(seconds_looking "$reader")")"
	echo end >&3
	wait "$worker"
	[[ $2 == whylag ]] || kill "$reader"
	wait "$reader" || true
	exec 3>&- 4>&-
	note "$1" "$2.median" "$median"
	note "$1" "$2.p99" "$p99"
	note "$1" "$2.max" "$max"
	case $2 in
	whylag | elsewhere) note "$1" "$2.rate" "$(looks_per_second)" ;;
	ss | netstat)
		read -r rate wall <"$TMP/reader.out"
		note "$1" "$2.rate" "$rate"
		note "$1" "$2.wall" "$wall"
		;;
	esac
}

# ratio SUBJECT METRIC: of its figure to that of bare, the median of each round's.
ratio() {
	awk -F '\t' -v s="$1.$2" -v b="bare.$2" '
		$2 == s { figure[$1] = $3 }
		$2 == b { bare[$1] = $3 }
		END { for (r in figure) if (r in bare) print figure[r] / bare[r] }' "$TSV" | median
}

# print_row SUBJECT
print_row() {
	local metric row=("$1")
	for metric in rate wall cpu looking median p99 max; do
		row+=("$(figures "$1.$metric" | median | xargs -r printf '%.3g')")
	done
	row+=("$(ratio "$1" median | xargs printf '%.2f')" "$(ratio "$1" p99 | xargs printf '%.2f')" \
		"$(ratio "$1" max | xargs printf '%.2f')")
	printf '%-9s %7s %8s %6s %8s %8s %8s %8s  %s\n' "${row[@]:0:8}" "${row[*]:8}"
}

subjects=(bare awake)
has_whylag && subjects+=(whylag elsewhere)
for peer in ss netstat; do
	if [[ -n $(type -P "$peer") ]]; then subjects+=("$peer"); else echo "$peer: skipped: not installed" >&2; fi
done
hold_all
for ((round = 1; round <= ROUNDS; round++)); do
	for ((i = 0; i < ${#subjects[@]}; i++)); do
		measure "$round" "${subjects[(i + round - 1) % ${#subjects[@]}]}"
	done
	echo "round $round of $ROUNDS done" >&2
done
echo "Medians of $ROUNDS rounds of $SECONDS_EACH s; the time to make a socket in us, of $((SECONDS_EACH * 4000)) a round"
printf '%-9s %7s %8s %6s %8s %8s %8s %8s  %s\n' reader looks/s 'ms each' 'CPU %' 'of it q.' median p99 max \
	'ratios to bare: median, p99, max'
for subject in "${subjects[@]}"; do print_row "$subject"; done
echo "'awake': nobody looks, but a loop keeps the readers' CPU from going idle, as a reader would"
echo "'whylag' records the worker, 'elsewhere' another process with as many sockets of its own ($OWN)"
echo "'of it q.': the thread of whylag that reads queues; the rest is recording"
echo "written to ${TSV#"$PWD"/}"
