#!/usr/bin/env bash
# The licences and sources of all crates, by the lists in deny.toml. With cargo-deny installed
# (cargo install --locked cargo-deny: over three minutes on two cores, so it is not asked for) that
# does it, and looks for known vulnerabilities where the database can be had.
set -euo pipefail

cd "$(dirname "$0")/.."
if scripts/cargo.sh deny --version >/dev/null 2>&1; then
	scripts/cargo.sh deny check bans licenses sources
	if scripts/cargo.sh deny fetch db >/dev/null 2>&1; then
		scripts/cargo.sh deny check advisories
	else
		echo "known vulnerabilities: not checked, the database cannot be had here"
	fi
	exit 0
fi
echo "known vulnerabilities: not checked, cargo-deny is not installed"

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
