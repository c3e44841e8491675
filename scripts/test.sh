#!/usr/bin/env bash
# Runs all tests and lists those that were skipped. Fails as well if the recorder could not record
# at all, because then everything about it was skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
WHYLAG=${CARGO_TARGET_DIR:-target}/debug/whylag
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-test.XXXXXX")
trap 'rm -rf "$folder"' EXIT

echo "== building the tests"
scripts/cargo.sh build --workspace --locked
scripts/cargo.sh test --workspace --locked --no-run

echo "== does the recorder record here?"
"$WHYLAG" --store "$folder/whylag.db" record -- true 2>"$folder/report" ||
	{ cat "$folder/report" >&2; exit 1; }
if "$WHYLAG" --store "$folder/whylag.db" runs --json | grep -q '"sampled": true'; then
	grep 'not recorded' "$folder/report" | head -n 1 >&2
	echo "No test of the recorder can run here. As root: make test, else: sudo make test" >&2
	exit 1
fi
echo "yes"

echo "== testing"
AS_ROOT=1 scripts/cargo.sh test --workspace --locked --no-fail-fast -- --show-output 2>&1 |
	tee "$folder/log"

echo "== skipped"
grep -h 'skipped: ' "$folder/log" | sort | uniq -c || echo "none"
