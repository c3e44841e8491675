#!/usr/bin/env bash
# Installs what the comparisons need (Debian); without root, says what to install.
set -euo pipefail

declare -A package=(
	[perf]=linux-perf
	[bpftrace]=bpftrace
	[strace]=strace
	[cc]=gcc
	[make]=make
	[jq]=jq
	[taskset]=util-linux
	[cyclictest]=rt-tests
	[ip]=iproute2
	[ss]=iproute2
	[netstat]=net-tools
	[redis-server]=redis-server
	[nginx]=nginx-light
	[pgbench]=postgresql
	[wrk]=wrk
	[curl]=curl
)

missing=()
for command in "${!package[@]}"; do
	[[ -n $(type -P "$command") ]] || missing+=("${package[$command]}")
done
# gcc alone has no C library headers.
[[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)

if ((${#missing[@]} == 0)); then
	echo "everything is there"
elif ((EUID == 0)) && [[ -n $(type -P apt-get) ]]; then
	# Debian starts each server that is installed, unless this says no.
	policy=/usr/sbin/policy-rc.d
	if [[ ! -e $policy ]]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	apt-get install -y --no-install-recommends "${missing[@]}"
else
	echo "missing; as root: apt-get install ${missing[*]}" >&2
	exit 1
fi
