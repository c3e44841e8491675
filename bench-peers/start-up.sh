#!/usr/bin/env bash
# Time until a tool records: what whylag says of itself, and wall time of recording /bin/true with
# it and with others (start, attach, run, stop, write).
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

begin start-up "ms"
need perf bpftrace jq
mount_tracefs
TRUE=$(type -P true)
STORE=$TMP/store

milliseconds() {
	awk -v s="$1" 'BEGIN { printf "%.1f\n", s * 1e3 }'
}

measured() {
	local seconds attach_ns
	case $1 in
	bare) seconds=$(seconds_of "$TRUE") ;;
	whylag) seconds=$(seconds_of "$WHYLAG" record --store "$STORE" -- "$TRUE") ;;
	whylag-attach)
		# Of the run that was stored last, of the subject above.
		seconds_of "$WHYLAG" record --store "$STORE" -- "$TRUE" >/dev/null || return
		attach_ns=$("$WHYLAG" explain --json --store "$STORE" | json_number attach_ns)
		[[ -n $attach_ns ]] || return
		seconds=$(awk -v ns="$attach_ns" 'BEGIN { print ns / 1e9 }')
		;;
	bpftrace) seconds=$(seconds_of bpftrace "$HERE/offcputime.bt" -c "$TRUE") ;;
	perf-record)
		seconds=$(seconds_of perf record -a -g -e sched:sched_switch -o "$TMP/perf.data" -- "$TRUE")
		;;
	esac || return
	milliseconds "$seconds"
}

subjects=(bare bpftrace perf-record)
has_whylag && subjects+=(whylag whylag-attach)
run_rounds measured "${subjects[@]}"
table bare whylag-attach whylag bpftrace perf-record
attach=$(figures whylag-attach | median)
[[ -z $attach ]] || goal "whylag attached and recording" "$attach" 250 ms
