#!/usr/bin/env bash
# demo.sh WHYLAG: records a program with a known fault and the same program with its fix. Fails if
# whylag does not name the cause in the first, or names it in the second.
set -euo pipefail

WHYLAG=$(realpath "$1")
cd "$(dirname "$0")/.."
SECONDS_EACH=${SECONDS_EACH:-5}
THREADS=16

folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-demo.XXXXXX")
export WHYLAG_STORE=$folder/whylag.db

say() {
	printf '\n== %s\n' "$*"
}

# recorded PROGRAM: records it; leaves the rate it reached in $rate and the share of the lost time
# that mmap-lock explains in $share, 0 if it is no finding.
recorded() {
	echo "\$ whylag record -- $1 $SECONDS_EACH $THREADS"
	"$WHYLAG" record -- "$1" "$SECONDS_EACH" "$THREADS" | tee "$folder/output"
	rate=$(sed -n 's/.* \([0-9]*\) scans\/s$/\1/p' "$folder/output")
	share=$("$WHYLAG" explain | awk '
		/^[0-9]+\. / { here = $2 == "mmap-lock:" }
		here && $1 == "explains" { print $2; found = 1 }
		END { if (!found) print 0 }')
}

say "A column store in small: $THREADS threads scan a cached file, and mostly do not run. Why?"
recorded mysteries/bin/mmap-lock-faulty
faulty_rate=$rate
faulty_share=$share

say "Where each thread's time went"
echo "\$ whylag show"
"$WHYLAG" show | sed -n '/^Threads/,/^$/p'

say "The same program with the fix: pread() into a buffer instead of mmap()"
echo "What is left to wait for is a CPU where there are fewer of them than threads."
recorded mysteries/bin/mmap-lock-fixed
fixed_rate=$rate
fixed_share=$share

say "Result"
echo "Both runs are in $WHYLAG_STORE:"
echo "    ${WHYLAG#"$PWD/"} --store $WHYLAG_STORE show 1"
if [[ $faulty_share == 0 || $fixed_share != 0 ]]; then
	echo "NOT SOLVED: mmap-lock explains $faulty_share % of the lost time of the faulty program" \
		"and $fixed_share % of the fixed one's" >&2
	exit 1
fi
awk -v a="$faulty_rate" -v b="$fixed_rate" -v s="$faulty_share" 'BEGIN {
	printf "mmap-lock explained %.0f %% of the lost time and is gone with the fix: ", s
	printf "%d -> %d scans/s, %.1f times as many.\n", a, b, b / a
}'
