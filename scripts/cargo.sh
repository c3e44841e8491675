#!/usr/bin/env bash
# Runs cargo, under sudo too: with the toolchain of the user who called sudo, and as that user, so
# that nothing in the checkout belongs to root. With AS_ROOT=1 it stays root. Says how to get a
# toolchain if there is none that is new enough.
set -euo pipefail

user=${SUDO_USER:-root}
home=$HOME
if ((EUID == 0)) && [[ $user != root ]]; then
	home=$(getent passwd "$user" | cut -d: -f6)
	export CARGO_HOME=${CARGO_HOME:-$home/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup}
fi
export PATH=${CARGO_HOME:-$home/.cargo}/bin:$PATH

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || true
if [[ $(printf '%s\n' "$wanted" "${found:-0}" | sort -V | head -n 1) != "$wanted" ]]; then
	cat >&2 <<-END
		Rust $wanted or newer is needed, found: ${found:-none}. Debian's own is too old; get it with

		    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile default

		(needs: apt-get install curl ca-certificates), then try again.
	END
	exit 1
fi

if ((EUID == 0)) && [[ $user != root && -z ${AS_ROOT:-} ]]; then
	exec sudo -u "$user" --preserve-env=CARGO_HOME,RUSTUP_HOME,CARGO_TARGET_DIR,RUSTFLAGS,RUSTDOCFLAGS \
		env HOME="$home" PATH="$PATH" cargo "$@"
fi
exec cargo "$@"
