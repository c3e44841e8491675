#!/usr/bin/env bash
# Runs all tests and lists what they skipped, which figures were not judged because something
# disturbed their recordings, and which failed. Fails as well if the recorder cannot record here at all, because then
# everything about it would be skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
WHYLAG=${CARGO_TARGET_DIR:-target}/debug/whylag
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-test.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT

# Not the program by itself first: for that cargo would build most crates once more, with fewer
# features of what they depend on.
echo "== building the program and the tests"
scripts/cargo.sh test --workspace --locked --no-run
echo "== built in $SECONDS s"
began=$SECONDS

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
export WHYLAG_RECORDS_HERE=1

# The test files that record or measure, which have a laboratory (crates/whylag/tests/common), and
# the others, as options of cargo. One of these takes as long as all the rest.
recording=() others=()
for file in crates/*/tests/*.rs crates/*/tests/*/main.rs; do
	name=$(basename "${file%/main.rs}" .rs)
	if [[ $file == crates/observe/* ]] || grep -q '^use common::.*Lab' "$file"; then
		recording+=(--test "$name")
	elif [[ $name == attack ]]; then
		continue
	else
		others+=(--test "$name")
	fi
done

# Always of the whole workspace: for a part of it cargo would build that part again, with fewer
# features of what it depends on.
run_tests() {
	AS_ROOT=1 scripts/cargo.sh test --workspace --locked --no-fail-fast "$@" 2>&1
}
# What tests that passed have printed is kept for the lists below, and not shown.
shown() {
	tee -a "$folder/log" | awk '/^successes:$/ { quiet = 1 }
		/^failures:$|^test result:/ { quiet = 0 }
		!quiet { print; fflush() }'
}

status=0
echo "== testing all but the recorder"
scripts/test-java.sh >"$folder/java" 2>&1 &
java=$!
run_tests --lib --bins -- --show-output >"$folder/units" &
units=$!
# More at once than there are CPUs: many wait for a recording to end.
run_tests --test attack -- --show-output --test-threads $((3 * $(nproc))) >"$folder/attack" &
attack=$!
run_tests "${others[@]}" -- --show-output --test-threads $((3 * $(nproc))) | shown || status=$?
wait "$units" || status=$?
shown <"$folder/units"
wait "$attack" || status=$?
shown <"$folder/attack"
# Examples in comments, which the crate has that other programs use; in those of explain are commands of the shell.
AS_ROOT=1 scripts/cargo.sh test --workspace --exclude whylag-explain --locked --doc 2>&1 | shown || status=$?
echo "== the Java tracer and the exchange"
wait "$java" || status=$?
tee -a "$folder/log" <"$folder/java"
echo "== so far $((SECONDS - began)) s"

echo "== testing what records"
run_tests "${recording[@]}" -- --show-output | shown || status=$?

scripts/not-judged.sh "$folder/log"
echo "== skipped"
grep 'skipped: ' "$folder/log" | sort | uniq -c || echo "nothing"
scripts/failures.sh "$folder/log"
echo "== tested in $((SECONDS - began)) s"
exit "$status"
