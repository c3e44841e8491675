#!/usr/bin/env bash
# Runs in a virtual machine: records each program of /job/list for two seconds, and leaves in
# /job/out the recorded runs, what was printed, and a line for each in /job/out/results.
cd /job || exit 1
export WHYLAG_STORE=/tmp/whylag.db
mkdir -p out
modprobe -a loop fuse 2>/dev/null
[[ -w /sys/kernel/mm/ksm/run ]] && echo 1 >/sys/kernel/mm/ksm/run
ulimit -c unlimited
uname -r >out/kernel

# PROGRAM OPTION ...
record() {
	local program=$1 status=0
	shift
	rm -f "$WHYLAG_STORE"*
	timeout 100 whylag record "$@" -- "mysteries/$program" 2 >"out/$program.text" 2>&1 || status=$?
	whylag export --format run -o "out/$program.whylag" >>"out/$program.text" 2>&1
	echo "$program $status" >>out/results
	sync # the machine may be ended
	echo "recorded $program: status $status"
}

while read -r program options; do
	# shellcheck disable=SC2086 # options are words
	record "$program" $options
done <list
whylag doctor --json >out/doctor.json 2>out/doctor.errors
exit 0
