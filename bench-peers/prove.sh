#!/usr/bin/env bash
# What `whylag prove` says where the truth is known, on this machine, in three parts (all, or those
# named):
#   equal    SETS proofs of each of two healthy programs and two mysteries against themselves: any
#            figure that is better or worse, and any cause that went or came, is false
#   faulty   each mystery, faulty against fixed, judged by the time that it says it lost: proven
#   same     each mystery, faulty against itself: never proven
# PAIRS recorded pairs each. ONLY="lazy-binding gzip" makes those alone. The whole takes hours, so
# what is done is kept in bench-peers/results/proofs.tsv, and not made again: a script that was ended
# goes on where it stopped, and two can run beside each other. FRESH=1 begins anew. What came out as
# it should not is kept whole in bench-peers/results/proofs/. What a reader has to know of how these
# proofs were made can be written into bench-peers/results/proofs.note. With --docs as the last word
# it writes docs/proofs.md from what is kept. Needs root.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

ROOT=$(dirname "$HERE")
SETS=${SETS:-20}
PAIRS=${PAIRS:-10}
ONLY=${ONLY:-}
BIN=$ROOT/mysteries/bin
RESULTS=$HERE/results
KEPT=$RESULTS/proofs.tsv
# What the five stories are about comes first.
STORIES=(lazy-binding mmap-lock timer-slack slow-clocksource rate-limit-burst)

((EUID == 0)) || die "needs root, for BPF and tracepoints; try: sudo -E $0"
need jq
need_whylag
PAGE=/dev/stdout
if [[ ${*: -1} == --docs ]]; then
	PAGE=$ROOT/docs/proofs.md
	set -- "${@:1:$#-1}"
fi
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
TMP=$(mktemp -d "${TMPDIR:-/tmp}/whylag-prove.XXXXXX")
at_exit rm -rf "$TMP"
mkdir -p "$RESULTS/proofs"
[[ -z ${FRESH:-} ]] || rm -f "$KEPT" "${KEPT%.tsv}.note" "$RESULTS/proofs"/*.json.gz

# is_wanted PART NAME SET: it is asked for, and not there yet. What failed is tried again; so is, by the
# next script, a mystery that was not proven (a noisy machine hides faults), three times in all.
is_wanted() {
	[[ -z $ONLY || " $ONLY " == *" $2 "* ]] || return 1
	[[ ! -e $KEPT ]] || ! awk -F '\t' -v part="$1" -v name="$2" -v set="$3" '
		$2 == part && $3 == name && $4 == set && $6 != "failed" { tries++; right = $6 ~ /^as/ }
		END { exit !(tries >= 3 || tries && (right || part != "faulty")) }' "$KEPT"
}

# prove PART NAME SET WORD...: one proof with these options, kept as one line.
prove() {
	local part=$1 name=$2 set=$3 started=$SECONDS line
	shift 3
	is_wanted "$part" "$name" "$set" || return 0
	rm -f "$TMP"/store*
	if env "${variables[@]}" "$WHYLAG" --store "$TMP/store" prove --pairs "$PAIRS" --json "$@" \
		>"$TMP/proof" 2>"$TMP/errors"; then
		line=$(jq -r -f "$HERE/prove.jq" --arg part "$part" "$TMP/proof")
	else
		# What cannot be shown on this host fails by itself, and is told.
		line=$(printf 'failed\t%s' "$(tail -n 1 "$TMP/errors" | tr '\t' ' ')")
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%Y-%m-%dT%H:%MZ)" "$part" "$name" "$set" \
		$((SECONDS - started)) "$line" >>"$KEPT"
	[[ $line == as\ it\ should\ be* ]] || gzip -c "$TMP/proof" >"$RESULTS/proofs/$part-$name-$set.json.gz"
	echo "$part $name $set: ${line//$'\t'/ }" >&2
}

# Two healthy programs, one judged by its wall time and one by its own figure, and two mysteries.
part_equal() {
	local set program variables=() lost=(--metric 'lost_ns=([0-9]+)')
	head -c 20000000 /dev/zero | tr '\0' 'x' >"$TMP/input"
	for ((set = 1; set <= SETS; set++)); do
		program="gzip -9 -c $TMP/input"
		prove equal gzip "$set" --before "$program" --after "$program"
		program="$BIN/healthy 0.5"
		prove equal healthy "$set" --before "$program" --after "$program" \
			--metric 'ops=([0-9]+)' --higher-is-better
		program="$BIN/mmap-lock-faulty 0.5"
		prove equal mmap-lock "$set" --before "$program" --after "$program" "${lost[@]}"
		program="$BIN/futex-convoy-faulty 0.5"
		prove equal futex-convoy "$set" --before "$program" --after "$program" "${lost[@]}"
	done
}

# of_mystery NAME: sets $faulty, $fixed, $options of `prove` (with the time that shows the fault), and
# the environment.
of_mystery() {
	local seconds=1
	options=(--cause "$1" --metric 'lost_ns=([0-9]+)') variables=()
	case $1 in
	core-dump | huge-exit | many-thread-vfork | shm-attach | slow-peer | sysv-sem) options+=(--follow) ;;
	# What comes about once a second, or rests on which requests are slow.
	dns-timeout | lazy-binding | nagle-delack | seccomp-audit | tcp-rto | turn-taking | \
		udp-rcvbuf-stall) seconds=2 ;;
	timer-proportional) seconds=6 options=(--cause "$1" --ticks) ;;
	timer-* | rt-throttling) seconds=4 options=(--cause "$1" --ticks) ;;
	esac
	faulty="$BIN/$1-faulty $seconds" fixed="$BIN/$1-fixed $seconds"
	# A library makes the clock slow for all, also for who looks at how slow it is.
	if [[ $1 == slow-clocksource ]]; then
		faulty="$BIN/$1 $seconds" fixed=LD_PRELOAD= variables=("LD_PRELOAD=$BIN/$1.so")
	fi
}

# Those of the stories, then the others.
mysteries() {
	printf '%s\n' "${STORIES[@]}"
	cd "$BIN" && for file in *-fixed; do
		[[ " ${STORIES[*]} " == *" ${file%-fixed} "* ]] || echo "${file%-fixed}"
	done
}

part_faulty() {
	local name faulty fixed options variables
	for name in $(mysteries); do
		of_mystery "$name"
		if [[ $fixed == *= ]]; then
			# shellcheck disable=SC2086 # words of a command
			prove faulty "$name" 1 "${options[@]}" --fix "$fixed" -- $faulty
		else
			prove faulty "$name" 1 "${options[@]}" --before "$faulty" --after "$fixed"
		fi
	done
}

part_same() {
	local name faulty fixed options variables
	for name in $(mysteries); do
		of_mystery "$name"
		prove same "$name" 1 "${options[@]}" --before "$faulty" --after "$faulty"
	done
}

for part in "${@:-equal faulty same}"; do
	for one in $part; do "part_$one"; done
done
"$HERE/prove-page.sh" "$KEPT" "$PAIRS" >"$TMP/page"
cat "$TMP/page" >"$PAGE"
