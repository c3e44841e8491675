# shellcheck shell=bash
# What the comparisons share: to be sourced after `set -euo pipefail`.
#
# A script calls `begin NAME UNIT`, measures with `run_rounds`, and prints with `table` and
# `compare`. Figures go to a TSV (round, subject, figure), from which all that is printed is made.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROUNDS=${ROUNDS:-5}
WHYLAG=${WHYLAG:-$(dirname "$HERE")/target/release/whylag}

# The benchmark has the last CPU for itself, the tools' own processes get the others: what is
# measured is what a tool adds to the work it watches, not its competition for the CPU.
BENCH_CPU=$(($(getconf _NPROCESSORS_ONLN) - 1))
TOOL_CPUS=$((BENCH_CPU > 0 ? 0 : BENCH_CPU))
((BENCH_CPU > 1)) && TOOL_CPUS=0-$((BENCH_CPU - 1))

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# --- cleaning up -------------------------------------------------------------------------------

CLEANUP=()

# at_exit COMMAND WORD...: to be done when the script ends, however it ends; last first.
at_exit() {
	CLEANUP+=("$(printf '%q ' "$@")")
}

clean_up() {
	local i
	for ((i = ${#CLEANUP[@]} - 1; i >= 0; i--)); do
		eval "${CLEANUP[i]}" || true
	done
}

# --- setting up --------------------------------------------------------------------------------

# begin NAME UNIT: root, a private directory in $TMP, the result file in $TSV.
begin() {
	((EUID == 0)) || die "needs root, for BPF and tracepoints; try: sudo -E $0"
	[[ $ROUNDS =~ ^[1-9][0-9]*$ ]] || die "ROUNDS is '$ROUNDS', must be a number from 1"
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/whylag-$1.XXXXXX")
	at_exit rm -rf "$TMP"
	UNIT=$2
	mkdir -p "$HERE/results"
	TSV=$HERE/results/$1-$(date -u +%Y%m%dT%H%M%SZ).tsv
	printf 'round\tsubject\t%s\n' "$UNIT" >"$TSV"
}

# need COMMAND...: ends the script if one is missing.
need() {
	local command
	for command in "$@"; do
		[[ -n $(type -P "$command") ]] ||
			die "'$command' is missing; $HERE/install.sh installs or names what is"
	done
}

has_whylag() {
	[[ -x $WHYLAG ]] && return
	echo "whylag: skipped: no program $WHYLAG (build it, or set WHYLAG)" >&2
	return 1
}

need_whylag() {
	[[ -x $WHYLAG ]] || die "no program $WHYLAG (build it, or set WHYLAG)"
}

# bpftrace and perf read the formats of tracepoints there.
mount_tracefs() {
	mountpoint -q /sys/kernel/tracing && return
	mount -t tracefs tracefs /sys/kernel/tracing || die "cannot mount tracefs"
	at_exit umount /sys/kernel/tracing
}

# built NAME: compiles NAME.c into $TMP/NAME.
built() {
	cc -O2 -Wall -Wextra -pthread -o "$TMP/$1" "$HERE/$1.c" || die "cannot compile $HERE/$1.c"
}

# --- measuring ---------------------------------------------------------------------------------

# bench_is WORD...: $BENCH will run `perf bench WORD... -l $LOOPS` on its CPU, after the same with
# $BEFORE loops if that is set. It has no spaces inside its words and begins with a full path, because
# bpftrace -c takes nothing else.
bench_is() {
	# shellcheck disable=SC2034 # for the script that sources this
	BENCH=(/bin/sh "$TMP/bench")
	cat >"$TMP/bench" <<-END
		bench() { taskset -c $BENCH_CPU "$(type -P perf)" bench -f simple $* -l "\$1"; }
		[ -z "\$BEFORE" ] || bench "\$BEFORE" >"$TMP/before.out"
		bench "\$LOOPS" >"$TMP/bench.out"
	END
}

# under TOOL WORD...: runs the tool, which is to run $BENCH, and prints the seconds that the
# benchmark says it took. No figure, and the end of what the tool said, if it failed.
under() {
	rm -f "$TMP/bench.out"
	if ! taskset -c "$TOOL_CPUS" "$@" >"$TMP/tool.log" 2>&1; then
		tail -n 5 "$TMP/tool.log" >&2
		return 1
	fi
	grep -Ex '[0-9]+\.[0-9]+' "$TMP/bench.out"
}

# run_rounds FUNCTION SUBJECT...: in each round calls `FUNCTION SUBJECT`, which prints a figure,
# for every subject, beginning with another one each time. A subject that fails is left out from
# then on.
run_rounds() {
	local function=$1 subjects=("${@:2}") round i subject figure
	local -A failed=()
	for ((round = 1; round <= ROUNDS; round++)); do
		for ((i = 0; i < ${#subjects[@]}; i++)); do
			subject=${subjects[(i + round - 1) % ${#subjects[@]}]}
			[[ -v failed[$subject] ]] && continue
			if figure=$("$function" "$subject"); then
				printf '%s\t%s\t%s\n' "$round" "$subject" "$figure" >>"$TSV"
			else
				echo "$subject: skipped: it failed, see above" >&2
				failed[$subject]=1
			fi
		done
		echo "round $round of $ROUNDS done" >&2
	done
}

# seconds_of COMMAND WORD...: wall time of a command whose output is not wanted.
seconds_of() {
	local start=$EPOCHREALTIME
	if ! "$@" >"$TMP/tool.log" 2>&1; then
		tail -n 5 "$TMP/tool.log" >&2
		return 1
	fi
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", b - a }'
}

# --- printing ----------------------------------------------------------------------------------

# median: of the numbers on standard input; nothing if there are none.
median() {
	sort -g | awk '{ v[NR] = $1 }
		END { if (NR) printf "%.6g\n", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# figures SUBJECT: one per round.
figures() {
	awk -F '\t' -v s="$1" '$2 == s { print $3 }' "$TSV"
}

# added SUBJECT: one per round, what it is above `bare` in that round.
added() {
	awk -F '\t' -v s="$1" '
		$2 == "bare" { bare[$1] = $3 }
		$2 == s { figure[$1] = $3 }
		END { for (r in figure) if (r in bare) print figure[r] - bare[r] }' "$TSV"
}

# table SUBJECT...: every round's figure, the median, and the median of what was added to bare.
table() {
	local subject
	printf '%-14s %10s %10s   %s\n' "$UNIT" median added "each round"
	for subject in "$@"; do
		[[ -n $(figures "$subject") ]] || continue
		printf '%-14s %10.6g %10s   %s\n' "$subject" "$(figures "$subject" | median)" \
			"$([[ $subject == bare ]] || added "$subject" | median)" \
			"$(figures "$subject" | xargs printf '%.6g ')"
	done
	echo "written to ${TSV#"$PWD"/}"
}

# compare SUBJECT PEER GOAL: what the subject adds over what the peer adds, as the median of each
# round's ratio, with the goal.
compare() {
	local ratio
	ratio=$(awk -F '\t' -v s="$1" -v p="$2" '
		{ v[$2, $1] = $3; round[$1] }
		END {
			for (r in round)
				if ((("bare", r) in v) && ((s, r) in v) && ((p, r) in v) && v[p, r] > v["bare", r])
					print (v[s, r] - v["bare", r]) / (v[p, r] - v["bare", r])
		}' "$TSV" | median)
	[[ -n $ratio ]] || return 0
	awk -v s="$1" -v p="$2" -v r="$ratio" -v goal="$3" 'BEGIN {
		printf "%s adds %.2f of what %s adds; goal: at most %.2f: %s\n",
			s, r, p, goal, r <= goal ? "met" : "not met"
	}'
}

# goal WHAT FIGURE LIMIT UNIT: a figure with its goal.
goal() {
	awk -v w="$1" -v f="$2" -v g="$3" -v u="$4" 'BEGIN {
		printf "%s: %.4g %s; goal: at most %g %s: %s\n", w, f, u, g, u, f <= g ? "met" : "not met"
	}'
}

# json_number KEY: the first number under this key, at any depth, of JSON on standard input.
json_number() {
	jq -r --arg key "$1" '[.. | objects | .[$key]? | numbers][0] // empty'
}
