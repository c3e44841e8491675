#!/usr/bin/env bash
# Writes the report pages of the five stories' mysteries into target/stories: of each the fault, and the
# fault and the fix side by side, from the recorded runs that the tests have. As root it also proves each
# fix here and now (8 minutes for all), and writes the page that has the proof: NAME-proof.html.
# Takes the pictures of docs/page by the tests of the page, which have to pass.
set -euo pipefail

cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
whylag=$target/debug/whylag
fixtures=crates/whylag/tests/fixtures
bin=$PWD/mysteries/bin
mkdir -p docs/page "$target/stories"

WHYLAG_SCREENSHOTS=$PWD/docs/page scripts/test-page.sh
for story in lazy-binding mmap-lock timer-proportional proc-scan-vs-fork slow-clocksource; do
	"$whylag" report $fixtures/$story-faulty.whylag -o "$target/stories/$story.html"
	"$whylag" report $fixtures/$story-{faulty,fixed}.whylag -o "$target/stories/$story-fixed.html"
done
echo "written: $target/stories/*.html and docs/page/*.png"
((EUID == 0)) || { echo "no proofs: recording needs root, try: sudo make stories"; exit 0; }

make --no-print-directory mysteries
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-stories.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# run_of SIDE: the first run of the proof on this side.
run_of() {
	jq --arg side "$1" '[.trials[] | select(.side == $side and .run != null)][0].run' "$folder/proof"
}

# proof STORY WORD...: proves with these options, and writes the page.
proof() {
	local story=$1 store=$folder/$1.db
	shift
	"$whylag" --store "$store" prove --json "$@" >"$folder/proof" 2>"$folder/errors" ||
		{ cat "$folder/errors" >&2; return 1; }
	"$whylag" --store "$store" report "$(run_of before)" "$(run_of after)" \
		-o "$target/stories/$story-proof.html"
	echo "$story: $(jq -r .summary "$folder/proof")"
}

lost=(--metric 'lost_ns=([0-9]+)')
proof lazy-binding --cause lazy-binding "${lost[@]}" --fix LD_BIND_NOW=1 -- "$bin/lazy-binding-faulty" 2
proof mmap-lock --cause mmap-lock "${lost[@]}" \
	--before "$bin/mmap-lock-faulty 1" --after "$bin/mmap-lock-fixed 1"
proof timer-proportional --cause timer-proportional --ticks \
	--before "$bin/timer-proportional-faulty 6" --after "$bin/timer-proportional-fixed 6"
proof proc-scan-vs-fork --cause proc-scan-vs-fork "${lost[@]}" \
	--before "$bin/proc-scan-vs-fork-faulty 1" --after "$bin/proc-scan-vs-fork-fixed 1"
LD_PRELOAD=$bin/slow-clocksource.so proof slow-clocksource --cause slow-clocksource "${lost[@]}" \
	--fix LD_PRELOAD= -- "$bin/slow-clocksource" 1
echo "written: $target/stories/*-proof.html"
