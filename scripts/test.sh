#!/usr/bin/env bash
# Runs all tests and lists what they skipped. Fails as well if the recorder cannot record here at
# all, because then everything about it would be skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
WHYLAG=${CARGO_TARGET_DIR:-target}/debug/whylag
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-test.XXXXXX")
trap 'rm -rf "$folder"' EXIT

echo "== building the program and the tests"
scripts/cargo.sh build --workspace --locked
scripts/cargo.sh test --workspace --locked --no-run

echo "== does the recorder record here?"
if ! "$WHYLAG" --store "$folder/whylag.db" record -- true 2>"$folder/report"; then
	cat "$folder/report" >&2
	exit 1
fi
if "$WHYLAG" --store "$folder/whylag.db" runs --json | grep -q '"sampled": true'; then
	grep '^whylag: ' "$folder/report" >&2 || true
	echo "No test of the recorder can run here. Tests need root: sudo make test" >&2
	exit 1
fi
echo "yes"

# What tests that passed have printed is kept for the list below, and not shown.
echo "== testing"
status=0
: >"$folder/rows"
AS_ROOT=1 WHYLAG_MYSTERIES_TABLE=$folder/rows scripts/cargo.sh test --workspace --locked --no-fail-fast -- --show-output 2>&1 |
	tee "$folder/log" |
	awk '/^successes:$/ { quiet = 1 }
		/^failures:$|^test result:/ { quiet = 0 }
		!quiet { print; fflush() }' || status=$?

echo "== the reader of trace files against hostile ones"
scripts/fuzz-trace.sh || status=$?
echo "== the Java tracer and the exchange"
scripts/test-java.sh 2>&1 | tee -a "$folder/log" || status=$?

echo "== what whylag said of the mysteries, and what is true (parts of the threads' wall time)"
scripts/mysteries-table.sh "$folder/rows"
echo "== skipped"
grep 'skipped: ' "$folder/log" | sort | uniq -c || echo "nothing"
exit "$status"
