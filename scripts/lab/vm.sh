#!/usr/bin/env bash
# Boots a virtual machine, runs JOB/run.sh in it as root, and gives back JOB/out in OUT/out. What
# run.sh prints is shown while it runs.
#
#     scripts/lab/vm.sh LAB SERIES CPUS JOB OUT [ARGUMENT OF THE KERNEL ...]
#
# KVM starts no guest on our machines, so this is QEMU's translator, some 15 times slower, with all
# CPUs of the guest on one thread: with a thread for each, guests that were recorded stalled.
# QEMU_OPTIONS are further options of it; MINUTES is how long it may take, 10 unless set.
set -euo pipefail

(($# >= 5)) || { echo "usage: vm.sh LAB SERIES CPUS JOB OUT [ARGUMENT ...]" >&2; exit 2; }
lab=$1 series=$2 cpus=$3 job=$4 out=$5
shift 5
minutes=${MINUTES:-10}
read -ra further <<<"${QEMU_OPTIONS:-}"
mkdir -p "$out" "$job/out"
rm -f "$out/job.ext4" "$out/log"
truncate -s 2G "$out/job.ext4"
mkfs.ext4 -q -F -d "$job" "$out/job.ext4"
: >"$out/log"
timeout "$((minutes * 60))" qemu-system-x86_64 -machine q35 -accel tcg,thread=single -cpu max \
	-smp "$cpus" -m 3G \
	-kernel "$(echo "$lab/kernel-$series"/boot/vmlinuz-*)" -initrd "$lab/initrd-$series.gz" \
	-append "console=ttyS0 quiet panic=-1 systemd.show_status=0 $*" \
	-drive file="$lab/root.ext4",if=virtio,format=raw,snapshot=on \
	-drive file="$out/job.ext4",if=virtio,format=raw,cache=unsafe \
	-serial file:"$out/console" -serial file:"$out/log" \
	-display none -monitor none -no-reboot -nic none "${further[@]}" &
qemu=$!
trap 'kill "$qemu" 2>/dev/null || true' EXIT
tail -n +1 -f --pid="$qemu" "$out/log" | stdbuf -oL tr -d '\r'
status=0
wait "$qemu" || status=$?
trap - EXIT
if ! grep -q '^lab: status' "$out/log"; then
	echo "Linux $series did not finish its job in the virtual machine (QEMU's status $status; 124: not" \
		"done after $minutes minutes). Its console said last:" >&2
	tail -15 "$out/console" >&2
fi
rm -rf "$out/out"
# A machine that was ended has not unmounted it.
e2fsck -fy "$out/job.ext4" >/dev/null 2>&1 || true
debugfs -R "rdump /out $out" "$out/job.ext4" >/dev/null 2>&1
rm "$out/job.ext4"
grep -q '^lab: status 0' "$out/log"
