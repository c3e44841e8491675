#!/usr/bin/env bash
# fuzz.sh CRATE TARGET: feeds a reader RUNS hostile inputs (300,000 when not given), or as many as it
# takes in SECONDS_EACH seconds (20), made by libFuzzer from the committed corpus, always the same ones. No
# cargo-fuzz and no nightly compiler is needed: the flags below are what cargo-fuzz would give,
# without its sanitizers, and the readers have no unsafe code for those to watch. An input that
# breaks one stays in crates/CRATE/fuzz/artifacts. Without arguments: all readers.
set -euo pipefail

cd "$(dirname "$0")/.."
if [[ $# -eq 0 ]]; then
	for reader in "trace reader" "inspect elf" "inspect perf_map"; do
		# shellcheck disable=SC2086 # two words
		"$0" $reader
	done
	exit
fi
crate=$1 name=$2
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
	--manifest-path "crates/$crate/fuzz/Cargo.toml"

artifacts=crates/$crate/fuzz/artifacts
mkdir -p "$artifacts" "$folder/new"
# What it finds goes to the first folder: the corpus stays as it is.
if ! "$target/$host/release/$name" -runs="$runs" -max_total_time="${SECONDS_EACH:-20}" -seed=1 \
	-timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	-artifact_prefix="$artifacts/" "$folder/new" "crates/$crate/fuzz/corpus/$name" \
	>"$folder/log" 2>&1; then
	tail -n 40 "$folder/log" >&2
	exit 1
fi
rmdir --ignore-fail-on-non-empty "$artifacts"
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log")
echo "$name: $inputs inputs, $(find "$folder/new" -type f | wc -l) of them on new ways through it: none broke it"
