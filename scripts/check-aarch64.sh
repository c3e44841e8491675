#!/usr/bin/env bash
# Compiles whylag for aarch64, the kernel side whole, the user side without linking. What it does
# there was never tried.
set -euo pipefail

cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
if ! rustup target list --installed | grep -qx "$target"; then
	rustup target add "$target"
fi
scripts/cargo.sh check --locked -p whylag --target "$target"
