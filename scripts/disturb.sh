#!/usr/bin/env bash
# Runs a command while something else takes 30 % of a CPU in bursts of 50 to 150 ms, each on any CPU:
#
#     scripts/disturb.sh make test
set -euo pipefail

PERCENT=30
(($#)) || { echo "usage: disturb.sh COMMAND [ARGUMENT ...]" >&2; exit 2; }
export LC_ALL=C # EPOCHREALTIME has a point

now_us() {
	local now=$EPOCHREALTIME
	us=${now/./}
}

disturb() {
	local cpus burst_us end_us pause_us nothing us
	cpus=$(nproc)
	exec {nothing}<> <(:) # to wait without a process
	while :; do
		taskset -pc $((RANDOM % cpus)) "$BASHPID" >/dev/null || true
		burst_us=$((50000 + RANDOM % 100 * 1000))
		now_us
		end_us=$((us + burst_us))
		while ((us < end_us)); do now_us; done
		pause_us=$((burst_us * (100 - PERCENT) / PERCENT))
		read -rt "$(printf '%d.%06d' $((pause_us / 1000000)) $((pause_us % 1000000)))" \
			-u "$nothing" || true
	done
}

disturb &
load=$!
trap 'kill "$load"' EXIT
status=0
"$@" || status=$?
exit "$status"
