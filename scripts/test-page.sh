#!/usr/bin/env bash
# Tests the page in Debian's chromium; what a fresh machine lacks is installed by `make test-page`.
# Fails if the built page in crates/page/web/dist is not what its source gives.
# WHYLAG_SCREENSHOTS=FOLDER takes the pictures of docs, too.
set -euo pipefail

cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
web=crates/page/web
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-pages.XXXXXX")
trap 'rm -rf "$folder"' EXIT

scripts/build-page.sh "$folder/dist"
if ! diff -rq "$folder/dist" "$web/dist"; then
	echo "$web/dist is not what its source gives: run 'make page' and commit it" >&2
	exit 1
fi
export WHYLAG=$target/debug/whylag WHYLAG_FIXTURES=$PWD/crates/whylag/tests/fixtures
export WHYLAG_PAGES=$folder/pages WHYLAG_TEST_RESULTS=$folder/results
mkdir "$WHYLAG_PAGES"
echo "== building the program, and pages of made-up runs"
# Of the whole workspace, as scripts/test.sh: a part of it would be built again with fewer features.
scripts/cargo.sh test --workspace --locked --no-run --test reports
scripts/cargo.sh test --workspace --locked --test made_up
(cd "$web" && npx --no-install playwright test "$@")
