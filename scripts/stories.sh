#!/usr/bin/env bash
# Writes the report pages of the five stories' mysteries, from the recorded runs that the tests have,
# into target/stories; of each its fault and its fix side by side. Takes the pictures of docs/page by
# the tests of the page, which have to pass.
set -euo pipefail

cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
fixtures=crates/whylag/tests/fixtures
mkdir -p docs/page "$target/stories"

WHYLAG_SCREENSHOTS=$PWD/docs/page scripts/test-page.sh
for story in lazy-binding mmap-lock timer-proportional proc-scan-vs-fork slow-clocksource; do
	"$target/debug/whylag" report $fixtures/$story-faulty.whylag -o "$target/stories/$story.html"
	"$target/debug/whylag" report $fixtures/$story-{faulty,fixed}.whylag \
		-o "$target/stories/$story-fixed.html"
done
echo "written: $target/stories/*.html and docs/page/*.png"
