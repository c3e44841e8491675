#!/usr/bin/env bash
# How fast and how reliable `whylag bench` and `whylag compare` are, in four parts (all, or those named):
#   time    how long a verdict with intervals takes, for 1, 2, 4 threads and 1, 2, 4 processes
#   floor   the empty operation, and getppid compared with `perf bench syscall basic`
#   equal   false alarms over PAIRS pairs of runs of the same thing
#   slower  how many of PAIRS slowdowns by a fifth are found: every getppid() is made slower by a
#           seccomp filter (slower.c), whose size is chosen with `perf bench`
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

PAIRS=${PAIRS:-20}
LOOPS=${LOOPS:-1000000}
CASE=(getppid --threads '1,2,4' --time "${TIME:-2s}")
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

# One figure of a short run, both on the same CPU: a busy neighbour on the host disturbs few of
# many short ones.
floor() {
	local bench=$TMP/floor.json
	case $1 in
	perf) getppid_ns ;;
	getppid)
		taskset -c "$BENCH_CPU" "$WHYLAG" bench getppid --threads 1 --time 300ms --json \
			--store "$STORE" >"$bench" 2>"$TMP/tool.log" || return
		jq '.cases[0].steps[0].net_ns * 100 | round / 100' "$bench"
		;;
	esac
}

fastest() {
	figures "$1" | sort -g | sed -n 1p
}

part_floor() {
	local limit=30 ratio ROUNDS=$((3 * ROUNDS))
	run_rounds floor perf getppid
	jq '.empty.rounds[].median_ns' "$TMP/floor.json" | sed "s/^/1\tempty\t/" >>"$TSV"
	grep -q '"clock": *"rdtsc' "$TMP/floor.json" && limit=15
	echo "clock: $(jq -r .clock "$TMP/floor.json")"
	goal "empty operation, median" "$(figures empty | median)" "$limit" ns
	echo "getppid, perf bench: $(figures perf | xargs) ns"
	echo "getppid, whylag: $(figures getppid | xargs) ns"
	echo "the fastest of each: $(fastest perf) and $(fastest getppid) ns"
	ratio=$(paste <(figures getppid) <(figures perf) | awk '{ print $1 / $2 }' | median)
	echo "median of each round's ratio: $ratio (perf's figure is a mean, so a neighbour is in it)"
	awk -v w="$(fastest getppid)" -v p="$(fastest perf)" 'BEGIN {
		r = w / p
		printf "undisturbed, whylag measures %.3f of what perf bench does; goal: 0.9 to 1.1: %s\n",
			r, (r >= 0.9 && r <= 1.1) ? "met" : "not met" }'
}

# --- equal and slower --------------------------------------------------------------------------

# run PADDING: measures under a filter of so many instructions.
run() {
	"$TMP/slower" "$1" "$WHYLAG" bench "${CASE[@]}" --store "$STORE" >"$TMP/tool.log" 2>&1 ||
		die "whylag bench failed: $(tail -n 3 "$TMP/tool.log")"
}

# What perf says of getppid now, the best of three short runs: other programs' tracing of system
# calls, for one, makes all of them slower by a half.
control() {
	local LOOPS=200000
	for _ in 1 2 3; do getppid_ns; done | sort -g | sed -n 1p
}

# pairs NAME PADDING: compares runs under the base filter with runs under another until PAIRS pairs
# were undisturbed: perf's figures before, between and after the runs are within 10 %. Counts the
# pairs that have a step with a difference, and those that have a slower one and no faster one; of
# disturbed pairs, those with a difference.
pairs() {
	local name=$1 padding=$2 pair verdicts controls state order
	DIFFERENT=0 SLOWER=0 DISTURBED=0 DISTURBED_DIFFERENT=0
	for ((pair = 1; pair - DISTURBED <= PAIRS && pair <= 3 * PAIRS; pair++)); do
		rm -f "$STORE"
		# Every other pair begins with the other side.
		order=("$BASE" "$padding" 1 2)
		((pair % 2)) || order=("$padding" "$BASE" 2 1)
		controls=$(control) && run "${order[0]}"
		controls+=" $(control)" && run "${order[1]}"
		controls+=" $(control)"
		"$WHYLAG" compare "${order[2]}" "${order[3]}" --json --store "$STORE" >"$TMP/compared.json"
		verdicts=$(jq -r '[.steps[].verdict] | join(" ")' "$TMP/compared.json")
		state=$(tr ' ' '\n' <<<"$controls" | sort -g |
			awk '{ v[NR] = $1 } END { print (v[NR] > 1.1 * v[1]) ? "disturbed" : "quiet" }')
		jq -r --arg r "$pair" --arg s "$name $state" \
			'.steps[] | [$r, "\($s) \(.step)", .median.ratio.estimate] | @tsv' \
			"$TMP/compared.json" >>"$TSV"
		if [[ $state == disturbed ]]; then
			DISTURBED=$((DISTURBED + 1))
			[[ $verdicts == *slower* || $verdicts == *faster* ]] &&
				DISTURBED_DIFFERENT=$((DISTURBED_DIFFERENT + 1))
		else
			[[ $verdicts == *slower* || $verdicts == *faster* ]] && DIFFERENT=$((DIFFERENT + 1))
			[[ $verdicts == *slower* && $verdicts != *faster* ]] && SLOWER=$((SLOWER + 1))
		fi
		echo "$name pair $pair, $state ($controls ns): $(jq -r '[.steps[].median.ratio.estimate
			| . * 1000 | round / 1000] | join(" ")' "$TMP/compared.json"): $verdicts"
	done
	QUIET=$((pair - 1 - DISTURBED))
	echo "$name: $DISTURBED pairs were disturbed, of which $DISTURBED_DIFFERENT show a difference"
	((QUIET > 0)) || die "no pair was undisturbed"
}

part_equal() {
	pairs equal "$BASE"
	goal "false alarms in $QUIET quiet pairs of equal runs" "$DIFFERENT" "$(((QUIET + 19) / 20))" pairs
}

# least PADDING: what getppid takes under such a filter when nobody disturbs.
least() {
	local round
	for ((round = 0; round < 2 * ROUNDS; round++)); do
		getppid_ns "$TMP/slower" "$1"
	done | sort -g | sed -n 1p
}

# The padding that makes getppid slower by FACTOR. The first instructions cost less than later ones
# (the CPU runs them in parallel with others), so that it is found by trying.
padding() {
	local LOOPS=400000 base tries padding=200
	base=$(least "$BASE")
	for ((tries = 0; tries < 3; tries++)); do
		padding=$(awk -v b="$base" -v m="$(least "$padding")" -v n="$padding" -v f="$FACTOR" 'BEGIN {
			wrong = m > b ? (f - 1) * b / (m - b) : 2
			printf "%d\n", n * (wrong > 2 ? 2 : wrong < 0.5 ? 0.5 : wrong) }')
	done
	echo "$padding"
}

# What perf sees of the slowdown: the truth to be found.
side() {
	getppid_ns "$TMP/slower" "$1"
}

part_slower() {
	local padding missed
	padding=$(padding)
	run_rounds side "$BASE" "$padding"
	echo "a filter of $padding instead of $BASE instructions: by perf bench, undisturbed," \
		"$(fastest "$padding") instead of $(fastest "$BASE") ns"
	awk -v a="$(fastest "$BASE")" -v b="$(fastest "$padding")" -v f="$FACTOR" \
		'BEGIN { exit !(b / a > f - 0.03 && b / a < f + 0.03) }' ||
		die "the machine is too disturbed to size a slowdown of $FACTOR times"
	pairs slower "$padding"
	missed=$((QUIET - SLOWER))
	goal "missed of $QUIET slowdowns in quiet pairs" "$missed" "$((QUIET / 20))" pairs
}

built slower
parts=("$@")
((${#parts[@]})) || parts=(time floor equal slower)
for part in "${parts[@]}"; do
	case $part in
	time | floor | equal | slower) "part_$part" ;;
	*) die "there is no part '$part': time, floor, equal, slower" ;;
	esac
done
echo "written to ${TSV#"$PWD"/}"
