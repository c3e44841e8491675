#!/usr/bin/env bash
# What `whylag bench` and `whylag compare` are worth, in four parts (all, or those named):
#   time    how long a verdict with intervals takes, for 1, 2, 4 threads and 1, 2, 4 processes
#   floor   the empty operation, and getppid beside `perf bench syscall basic`
#   equal   false alarms over PAIRS pairs of runs of the same thing
#   dearer  how many of PAIRS slowdowns by a fifth are found: every getppid() is made dearer by a
#           seccomp filter (dearer.c), whose size is chosen with `perf bench`
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

PAIRS=${PAIRS:-20}
LOOPS=${LOOPS:-1000000}
CASE=(getppid --threads '1,2,4' --time 1s)
# The injected slowdown.
FACTOR=1.2
# Instructions of the filter that both sides of a pair run under: it costs something by itself.
BASE=1

begin bench-verdict "figure"
need perf jq taskset cc
need_whylag
[[ $PAIRS =~ ^[1-9][0-9]*$ ]] || die "PAIRS is '$PAIRS', must be a number from 1"
STORE=$TMP/store

# getppid_ns [COMMAND WORD...]: what perf says one takes, run by the command.
getppid_ns() {
	local seconds
	seconds=$("$@" taskset -c "$BENCH_CPU" perf bench -f simple syscall basic -l "$LOOPS" |
		grep -Ex '[0-9]+\.[0-9]+')
	awk -v s="$seconds" -v n="$LOOPS" 'BEGIN { printf "%.2f\n", s * 1e9 / n }'
}

# --- time --------------------------------------------------------------------------------------

verdict() {
	"$WHYLAG" bench getppid --threads 1,2,4 --store "$STORE" &&
		"$WHYLAG" bench getppid --processes 1,2,4 --store "$STORE"
}

part_time() {
	seconds_of verdict | sed "s/^/1\ttime\t/" >>"$TSV"
	goal "a verdict for 1, 2, 4 threads and processes of one case" "$(figures time)" 10 s
}

# --- floor -------------------------------------------------------------------------------------

# Both figures are of one run: the second subject reads what the first has left.
floor() {
	local bench=$TMP/floor.json
	case $1 in
	perf) getppid_ns ;;
	getppid)
		"$WHYLAG" bench getppid --threads 1 --time 500ms --json --store "$STORE" >"$bench" \
			2>"$TMP/tool.log" || return
		jq '.cases[0].steps[0].net_ns' "$bench"
		;;
	esac
}

part_floor() {
	local limit=30 ratio
	run_rounds floor perf getppid
	jq '.empty.rounds[].median_ns' "$TMP/floor.json" | sed "s/^/1\tempty\t/" >>"$TSV"
	grep -q '"clock": *"rdtsc' "$TMP/floor.json" && limit=15
	echo "clock: $(jq -r .clock "$TMP/floor.json")"
	goal "empty operation, median" "$(figures empty | median)" "$limit" ns
	echo "getppid, perf bench: $(figures perf | xargs) ns; whylag: $(figures getppid | xargs) ns"
	ratio=$(paste <(figures getppid) <(figures perf) | awk '{ print $1 / $2 }' | median)
	awk -v r="$ratio" 'BEGIN {
		printf "whylag measures %.3f of what perf bench does; goal: 0.9 to 1.1: %s\n",
			r, (r >= 0.9 && r <= 1.1) ? "met" : "not met" }'
}

# --- equal and dearer --------------------------------------------------------------------------

# run PADDING: measures under a filter of so many instructions.
run() {
	"$TMP/dearer" "$1" "$WHYLAG" bench "${CASE[@]}" --store "$STORE" >"$TMP/tool.log" 2>&1 ||
		die "whylag bench failed: $(tail -n 3 "$TMP/tool.log")"
}

# pairs NAME PADDING: compares runs under the base filter with runs under another; prints each and
# counts the pairs that have a step with a difference, and those that have a slower one.
pairs() {
	local name=$1 padding=$2 pair verdicts
	DIFFERENT=0 SLOWER=0
	for ((pair = 1; pair <= PAIRS; pair++)); do
		rm -f "$STORE"
		# Every other pair begins with the other side.
		if ((pair % 2)); then
			run "$BASE" && run "$padding" && set -- 1 2
		else
			run "$padding" && run "$BASE" && set -- 2 1
		fi
		"$WHYLAG" compare "$1" "$2" --json --store "$STORE" >"$TMP/compared.json"
		verdicts=$(jq -r '[.steps[].verdict] | join(" ")' "$TMP/compared.json")
		jq -r --arg r "$pair" --arg s "$name" \
			'.steps[] | [$r, "\($s) \(.step)", .median.ratio.estimate] | @tsv' \
			"$TMP/compared.json" >>"$TSV"
		[[ $verdicts == *slower* || $verdicts == *faster* ]] && DIFFERENT=$((DIFFERENT + 1))
		[[ $verdicts == *slower* && $verdicts != *faster* ]] && SLOWER=$((SLOWER + 1))
		echo "$name pair $pair: $(jq -r '[.steps[] | .median.ratio.estimate | . * 1000 | round / 1000]
			| join(" ")' "$TMP/compared.json"): $verdicts"
	done
}

part_equal() {
	pairs equal "$BASE"
	goal "false alarms in $PAIRS equal pairs" "$DIFFERENT" "$(((PAIRS + 19) / 20))" pairs
}

# The padding that makes getppid dearer by FACTOR, from what a lot of padding costs.
padding() {
	local round base=() much=() most=1000
	for ((round = 1; round <= ROUNDS; round++)); do
		base+=("$(getppid_ns "$TMP/dearer" "$BASE")")
		much+=("$(getppid_ns "$TMP/dearer" "$most")")
	done
	awk -v b="$(printf '%s\n' "${base[@]}" | median)" -v m="$(printf '%s\n' "${much[@]}" | median)" \
		-v base="$BASE" -v most="$most" -v f="$FACTOR" \
		'BEGIN { printf "%d\n", base + (f - 1) * b / ((m - b) / (most - base)) + 0.5 }'
}

# What perf sees of the slowdown: the truth to be found.
side() {
	getppid_ns "$TMP/dearer" "$1"
}

part_dearer() {
	local padding missed
	padding=$(padding)
	run_rounds side "$BASE" "$padding"
	echo "a filter of $padding instead of $BASE instructions: perf bench sees" \
		"$(paste <(figures "$padding") <(figures "$BASE") | awk '{ print $1 / $2 }' | median) times"
	pairs dearer "$padding"
	missed=$((PAIRS - SLOWER))
	echo "found: $SLOWER of $PAIRS"
	goal "missed of $PAIRS slowdowns" "$missed" "$((PAIRS / 20))" pairs
}

built dearer
parts=("$@")
((${#parts[@]})) || parts=(time floor equal dearer)
for part in "${parts[@]}"; do
	case $part in
	time | floor | equal | dearer) "part_$part" ;;
	*) die "there is no part '$part': time, floor, equal, dearer" ;;
	esac
done
echo "written to ${TSV#"$PWD"/}"
