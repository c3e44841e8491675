#!/usr/bin/env bash
# Feeds the reader of trace files RUNS hostile inputs (300,000 when not given), made by libFuzzer
# from the committed corpus, always the same ones. No cargo-fuzz and no nightly compiler is needed:
# the flags below are what cargo-fuzz would give, without its sanitizers, and the reader has no
# unsafe code for those to watch. An input that breaks it stays in crates/trace/fuzz/artifacts.
set -euo pipefail

cd "$(dirname "$0")/.."
runs=${RUNS:-300000}
host=x86_64-unknown-linux-gnu
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-fuzz.XXXXXX")
trap 'rm -rf "$folder"' EXIT

coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# With --target the build scripts, which cannot link that, do without.
CARGO_TARGET_DIR=$target RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 $coverage" \
	scripts/cargo.sh build --quiet --release --locked --target "$host" \
	--manifest-path crates/trace/fuzz/Cargo.toml

artifacts=crates/trace/fuzz/artifacts
mkdir -p "$artifacts" "$folder/new"
# What it finds goes to the first folder: the corpus stays as it is.
if ! "$target/$host/release/reader" -runs="$runs" -seed=1 -timeout=10 -verbosity=0 \
	-artifact_prefix="$artifacts/" "$folder/new" crates/trace/fuzz/corpus/reader \
	>"$folder/log" 2>&1; then
	tail -n 40 "$folder/log" >&2
	exit 1
fi
rmdir --ignore-fail-on-non-empty "$artifacts"
echo "$runs inputs, $(find "$folder/new" -type f | wc -l) of them on new ways through the reader: none broke it"
