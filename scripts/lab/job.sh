#!/usr/bin/env bash
# Runs in a virtual machine: records each program of /job/list for as many seconds as stand beside
# it, and leaves in /job/out the recorded runs, what was printed, and a line for each in
# /job/out/results.
cd /job || exit 1
WHYLAG_STORE=$(mktemp -d)/whylag.db # root takes none in a folder where others may make files
export WHYLAG_STORE
mkdir -p out
modprobe -a loop fuse 2>/dev/null
# As fast as it can: by default it scans 100 pages every 20 ms, and the guests of ksm-cow have 16,384.
if cd /sys/kernel/mm/ksm 2>/dev/null; then
	echo 0 >sleep_millisecs
	echo 16384 >pages_to_scan
	[[ ! -e smart_scan ]] || echo 0 >smart_scan
	echo 1 >run
	cd /job || exit 1
fi
# For swap-in; all else is recorded without.
swap=/job/swap
swap_on() {
	[[ -e $swap ]] || { dd if=/dev/zero of="$swap" bs=1M count=256 status=none && chmod 600 "$swap" && mkswap "$swap" >/dev/null; }
	swapon "$swap"
}
ulimit -c unlimited
uname -r >out/kernel

record() {
	local program=$1 seconds=$2 status=0
	rm -f "$WHYLAG_STORE"*
	timeout 100 whylag record -- "mysteries/$program" "$seconds" >"out/$program.text" 2>&1 || status=$?
	whylag export --format run -o "out/$program.whylag" >>"out/$program.text" 2>&1
	echo "$program $status" >>out/results
	sync # the machine may be ended
	echo "recorded $program: status $status"
}

# A program in a cgroup of version 2 that is frozen for half of the time, as a paused container.
record_frozen() {
	local group=/sys/fs/cgroup/lab-frozen name=stopped-or-traced@frozen program freezer status=0
	mkdir "$group"
	bash -c 'while :; do :; done' &
	program=$!
	echo "$program" >"$group/cgroup.procs"
	while :; do
		echo 1 >"$group/cgroup.freeze"
		sleep 0.3
		echo 0 >"$group/cgroup.freeze"
		sleep 0.3
	done &
	freezer=$!
	rm -f "$WHYLAG_STORE"*
	timeout 100 whylag record -p "$program" --time 3s >"out/$name.text" 2>&1 || status=$?
	kill "$freezer" "$program"
	echo 0 >"$group/cgroup.freeze"
	whylag export --format run -o "out/$name.whylag" >>"out/$name.text" 2>&1
	echo "$name $status" >>out/results
	echo "recorded $name: status $status"
}

while read -r program seconds; do
	if [[ $program == stopped-or-traced@frozen ]]; then
		record_frozen
		continue
	fi
	[[ $program != swap-in-* ]] || swap_on
	record "$program" "$seconds"
	[[ $program != swap-in-* ]] || swapoff "$swap"
done <list
whylag doctor --json >out/doctor.json 2>out/doctor.errors
exit 0
