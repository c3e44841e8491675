#!/usr/bin/env bash
# Records a host that is treated badly for DURATION seconds (1200 when not given): storms of execs
# and forks, 20,000 threads, a store on a small disk, recorders killed with SIGKILL. Fails if the
# memory of the recorder that lasts from the beginning to the end grows, if losses are not counted,
# or if a store cannot be read and recorded to after a kill.
#
#     sudo make soak DURATION=120
set -euo pipefail

if [ -z "${SOAK_INSIDE:-}" ]; then
	# The small disk is mounted in a namespace of its own, and goes with it.
	exec env SOAK_INSIDE=1 unshare -m "$0" "$@"
fi

cd "$(dirname "$0")/.."
whylag=${1:?whylag, as make soak names it}
duration=${DURATION:-1200}
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-soak.XXXXXX")
export TMPDIR=$folder
failed=0
jobs_of_soak=()

# shellcheck disable=SC2317 # the trap calls it
finish() {
	kill "${jobs_of_soak[@]}" 2>/dev/null || true
	kill -KILL "${lasting:-none}" 2>/dev/null || true
	wait 2>/dev/null || true
	umount "$folder/disk" 2>/dev/null || true
	rm -rf "$folder"
}
trap finish EXIT

fail() {
	echo "FAILED: $*" >&2
	failed=1
}
# Nothing if it has ended meanwhile.
rss_kib() { awk '/^VmRSS:/ { print $2 }' "/proc/$1/status" 2>/dev/null; }

mkdir "$folder/disk"
mount -t tmpfs -o size=24m,mode=700 none "$folder/disk"
cc -O2 -pthread -o "$folder/crowd" crates/whylag/tests/programs/crowd.c

storms() {
	sh -c 'while :; do /bin/true; done' &
	jobs_of_soak+=("$!")
	sh -c 'while :; do (:) ; (:) ; done' &
	jobs_of_soak+=("$!")
}

# The recorder that lasts. Few intervals are kept whole: what grows is then the recorder, not the run.
begin_lasting() {
	"$whylag" --store "$folder/lasting.db" record -a --threshold 1s --time "${duration}s" \
		2>"$folder/lasting" &
	lasting=$!
	until grep -q '^whylag: recording' "$folder/lasting" 2>/dev/null; do sleep 0.2; done
}

# 20,000 threads at once, some seconds each time; minutes where others have the CPUs.
crowd_round() {
	local status=0
	timeout 300 "$folder/crowd" 20000 2000 >/dev/null || status=$?
	[ "$status" = 0 ] || fail "the 20,000 threads ended with status $status (124: not within 300 s)"
	crowds=$((crowds + 1))
}

killed_round() {
	local store=$folder/killed.db
	"$whylag" --store "$store" record -a --threshold 1ms >/dev/null 2>&1 &
	local recorder=$!
	sleep "$((RANDOM % 4)).$((RANDOM % 10))"
	kill -KILL "$recorder" 2>/dev/null || true
	wait "$recorder" 2>/dev/null || true
	if [ -e "$store" ]; then
		# Killed before the first run began, it has none.
		"$whylag" --store "$store" runs >/dev/null 2>"$folder/after" ||
			grep -q 'nothing recorded here yet' "$folder/after" ||
			fail "the store cannot be read after a kill: $(tail -n 3 "$folder/after")"
	fi
	"$whylag" --store "$store" record -- true >/dev/null 2>"$folder/after" ||
		fail "the store cannot be recorded to after a kill: $(tail -n 3 "$folder/after")"
	rm -f "$store"*
	kills=$((kills + 1))
}

# On the small disk: it is stored, or said not to be, and then it is in the file that is named.
small_disk_round() {
	local status=0 file
	"$whylag" --store "$folder/disk/whylag.db" record -a --threshold 20us --time 5s \
		>/dev/null 2>"$folder/small" || status=$?
	grep -q 'of wall time went' "$folder/small" || fail "no report from the small disk"
	if grep -q '^whylag: run .* is stored' "$folder/small"; then
		[ "$status" = 0 ] || fail "stored, with status $status"
		return
	fi
	full=$((full + 1))
	file=$(sed -n 's/^whylag: it is in \(.*\): .*/\1/p' "$folder/small")
	if [ "$status" != 1 ] || [ -z "$file" ]; then
		fail "neither stored nor in a file, status $status: $(tail -n 5 "$folder/small")"
		return
	fi
	"$whylag" show "$file" >/dev/null || fail "the file cannot be read"
	rm -f "$file" "$folder/disk/whylag.db"*
}

kills=0 full=0 crowds=0
began=$SECONDS
begin_lasting
storms
crowd_round
warm=$(rss_kib "$lasting") last=$warm
while [ $((SECONDS - began + 20)) -lt "$duration" ]; do
	killed_round
	small_disk_round
	crowd_round
	now=$(rss_kib "$lasting" || true)
	last=${now:-$last}
	# By half of the time what has a limit has reached it: mappings, stacks, processes.
	if [ $((SECONDS - began)) -lt $((duration / 2)) ]; then warm=$last; fi
	echo "$((SECONDS - began)) s: $kills kills, $full times the disk was full, recorder ${last} KiB"
done
status=0
wait "$lasting" || status=$?
[ "$status" = 0 ] || fail "the recorder that lasts ended with $status: $(tail -n 5 "$folder/lasting")"

echo "memory of the recorder: $warm KiB after half of the time, $last KiB at the end"
# A quarter more, and 16 MiB: threads that come and go are of different numbers at each look.
[ "$last" -le $((warm + warm / 4 + 16384)) ] || fail "its memory grew"
[ "$kills" -gt 0 ] || fail "no recorder was killed: DURATION is too short"

# Every thread that was started is in the run, or counted as lost.
# Lines are broken anywhere, and nothing is said where none was lost.
lost=$(tr -s '\n ' ' ' <"$folder/lasting" | grep -o '[0-9,]* events lost' | tail -n 1 | tr -d ', a-z') || true
lost=${lost:-0}
threads=$("$whylag" --store "$folder/lasting.db" runs --json |
	sed -n 's/^ *"threads": \([0-9]*\).*/\1/p')
echo "$crowds crowds of 20,000 threads: $threads threads in the run, $lost events counted as lost"
[ $((threads + lost)) -ge $((crowds * 20000)) ] || fail "threads are missing"
exit "$failed"
