#!/usr/bin/env bash
# `whylag series` beside Apache Otava 0.8.0 (PyPI) on the same made-up series of 50 runs, SETS of each
# kind, and how long a thousand runs take. SHORT=1 makes 20 of each kind. With --docs it writes
# docs/series.md. Needs no root; Otava goes into a virtual environment under $TMP.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$HERE")
WHYLAG=${WHYLAG:-$ROOT/target/release/whylag}
SETS=${SETS:-100}
[[ -n ${SHORT:-} ]] && SETS=20
TMP=$(mktemp -d "${TMPDIR:-/tmp}/whylag-series.XXXXXX")
trap 'rm -rf "$TMP"' EXIT

[[ -x $WHYLAG ]] || { echo "series.sh: $WHYLAG is missing: cargo build --release" >&2; exit 1; }
"$ROOT/scripts/cargo.sh" run --quiet --release --locked --manifest-path "$ROOT/Cargo.toml" \
	-p whylag --example series_suite -- "$TMP" "$SETS"
OTAVA=${OTAVA:-$TMP/venv/bin/python}
if [[ ! -x $OTAVA ]]; then
	python3 -m venv "$TMP/venv"
	"$TMP/venv/bin/pip" install --quiet apache-otava==0.8.0
fi

for store in "$TMP"/*-*.db; do
	"$WHYLAG" --store "$store" series --json >"${store%.db}.whylag"
done
started=$(date +%s%N)
"$WHYLAG" --store "$TMP/thousand.db" series >"$TMP/thousand.txt"
series_ms=$((($(date +%s%N) - started) / 1000000))
started=$(date +%s%N)
"$WHYLAG" --store "$TMP/thousand.db" runs --grid >"$TMP/grid.txt"
grid_ms=$((($(date +%s%N) - started) / 1000000))

page=/dev/stdout
[[ ${1:-} == --docs ]] && page=$ROOT/docs/series.md
"$OTAVA" "$HERE/series.py" "$TMP" "$SETS" "$series_ms" "$grid_ms" >"$TMP/page"
cat "$TMP/page" >"$page"
