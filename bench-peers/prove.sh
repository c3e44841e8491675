#!/usr/bin/env bash
# What `whylag prove` says where the truth is known, on this machine, in two parts (both, or those
# named):
#   equal    SETS proofs of each of two healthy programs and two mysteries against themselves: any
#            verdict but "same" and "insufficient", and any cause that went or came, is a false one
#   faulty   each mystery, faulty against fixed: its cause has to go
# PAIRS recorded pairs each. SHORT=1 makes one proof of 6 pairs each, of three mysteries. With --docs
# as the last word it writes docs/proofs.md. The whole takes some hours. Needs root.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

ROOT=$(dirname "$HERE")
SETS=${SETS:-20}
PAIRS=${PAIRS:-10}
BIN=$ROOT/mysteries/bin
mapfile -t MYSTERIES < <(cd "$BIN" && for file in *-fixed; do echo "${file%-fixed}"; done)
if [[ -n ${SHORT:-} ]]; then
	SETS=1 PAIRS=6
	MYSTERIES=(mmap-lock futex-convoy cgroup-throttle)
fi
PAGE=/dev/stdout
if [[ ${*: -1} == --docs ]]; then
	PAGE=$ROOT/docs/proofs.md
	set -- "${@:1:$#-1}"
fi

begin prove "verdict"
need jq
need_whylag
STORE=$TMP/store
# Two healthy programs of about a second, as lines for the shell.
head -c 40000000 /dev/zero | tr '\0' 'x' >"$TMP/input"
EQUAL=(
	"$BIN/healthy 1"
	"gzip -9 -c $TMP/input"
	"$BIN/mmap-lock-faulty 1 16"
	"$BIN/futex-convoy-faulty 1"
)

# prove BEFORE AFTER [OPTION WORD...]: the proof as JSON.
prove() {
	local before=$1 after=$2
	shift 2
	"$WHYLAG" --store "$STORE" prove --before "$before" --after "$after" --pairs "$PAIRS" --json "$@"
}

part_equal() {
	local command set
	for command in "${EQUAL[@]}"; do
		for ((set = 1; set <= SETS; set++)); do
			prove "$command" "$command" | jq -r --arg name "equal ${command##*/}" --arg set "$set" '
				[$set, $name, ([.measured.verdict | if type == "object" then keys[0] else . end]
				+ [.cause, .other_causes[]? | select(. != null) | .verdict
				| select(. == "gone" or . == "came")] | join(","))] | @tsv' >>"$TSV"
			rm -f "$STORE"*
		done
	done
}

part_faulty() {
	local name
	for name in "${MYSTERIES[@]}"; do
		# What cannot be shown on this host fails by itself, and is told.
		prove "$BIN/$name-faulty 2" "$BIN/$name-fixed 2" --cause "$name" 2>"$TMP/errors" |
			jq -r --arg name "faulty $name" '[1, $name, .cause.verdict] | @tsv' >>"$TSV" ||
			printf '1\tfaulty %s\tfailed: %s\n' "$name" "$(tail -n 1 "$TMP/errors")" >>"$TSV"
		rm -f "$STORE"*
	done
}

page() {
	echo "# What \`whylag prove\` says where the truth is known"
	echo
	echo "Written by \`bench-peers/prove.sh --docs\`, $PAIRS recorded pairs a proof, Linux $(uname -r)," \
		"$(nproc) CPUs."
	echo
	echo "| proofs | verdicts |"
	echo "|---|---|"
	awk -F'\t' 'NR > 1 { count[$2 "\t" $3]++ }
		END { for (key in count) { split(key, part, "\t")
			print "| " part[1] " | " part[2] ": " count[key] " |" } }' "$TSV" | sort
}

for part in "${@:-equal faulty}"; do
	for one in $part; do "part_$one"; done
done
page >"$TMP/page"
cat "$TMP/page" >"$PAGE"
