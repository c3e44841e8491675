#!/usr/bin/env bash
# Makes what a virtual machine boots from: LAB/root.ext4, a Debian with systemd that runs
# /job/run.sh, and an initramfs LAB/initrd-SERIES.gz for each kernel.
#
#     scripts/lab/image.sh LAB SERIES ...
set -euo pipefail

(($# >= 2)) || { echo "usage: image.sh LAB SERIES ..." >&2; exit 2; }
cd "$1"
shift
scratch=$(mktemp -d ./scratch.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# Debian and Ubuntu put them in different places. depmod is that of the small Debian, which reads
# compressed modules.
modules_of() {
	dirname "$(find "kernel-$1" -path '*lib/modules/*/kernel' -prune)"
}

# The disk is a module in Debian's kernels and built into Ubuntu's; what a module needs is in
# modules.dep.
make_initrd() {
	local series=$1 modules tree module path count=0
	modules=$(modules_of "$series")
	tree=$scratch/initrd-$series
	mkdir -p "$tree"/{bin,proc,sys,dev,newroot,modules}
	cp "$(find busybox -path '*bin/busybox')" "$tree/bin/"
	for module in virtio_pci virtio_blk; do
		# The line lists what has to be loaded before, last first.
		# shellcheck disable=SC2013 # one path a line, without spaces
		for path in $(awk -F': ?' -v name="/$module.ko" 'index($1, name) {
				n = split($2, needed, " ")
				for (i = n; i > 0; i--) print needed[i]
				print $1 }' "$modules/modules.dep"); do
			count=$((count + 1))
			case $path in
			*.zst) zstd -dcq "$modules/$path" >"$tree/modules/$(printf %02d "$count").ko" ;;
			*.xz) xz -dc "$modules/$path" >"$tree/modules/$(printf %02d "$count").ko" ;;
			*) cp "$modules/$path" "$tree/modules/$(printf %02d "$count").ko" ;;
			esac
		done
	done
	cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod "$module" 2>/dev/null; done
i=0
while [ ! -b /dev/vda ] && [ $i -lt 100 ]; do $b sleep 0.1; i=$((i + 1)); done
$b mount -t ext4 /dev/vda /newroot
$b mount --move /dev /newroot/dev
$b umount /sys /proc
exec $b switch_root /newroot /sbin/init
INIT
	chmod +x "$tree/init"
	(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"initrd-$series.gz"
}

root=$scratch/root
cp -a debian "$root"
rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/{doc,locale,man}
mkdir -p "$root/lib/modules" "$root/job"
for series; do
	modules=$(modules_of "$series")
	cp -a "$modules" "$root/lib/modules/"
	chroot "$root" depmod "$(basename "$modules")"
	cp "$root/lib/modules/$(basename "$modules")"/modules.dep "$modules/"
	make_initrd "$series"
done
cat >"$root/etc/systemd/system/lab.service" <<'UNIT'
[Unit]
Description=runs the job and powers off
After=local-fs.target systemd-tmpfiles-setup.service
[Service]
Type=oneshot
ExecStart=/lab.sh
StandardOutput=file:/dev/ttyS1
StandardError=file:/dev/ttyS1
TimeoutStartSec=infinity
TasksMax=infinity
Delegate=yes
[Install]
WantedBy=multi-user.target
UNIT
cat >"$root/lab.sh" <<'LAB'
#!/bin/bash
stty -F /dev/ttyS1 raw -echo
mount /dev/vdb /job
cd /job
export HOME=/root PATH=/job/bin:$PATH
read -r up _ </proc/uptime
echo "lab: up after $up s, Linux $(uname -r), $(nproc) CPUs"
bash /job/run.sh
echo "lab: status $?"
cd /
umount /job
sync
systemctl poweroff -ff
LAB
chmod +x "$root/lab.sh"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../lab.service "$root/etc/systemd/system/multi-user.target.wants/lab.service"
echo lab >"$root/etc/hostname"
echo '127.0.0.1 localhost lab' >"$root/etc/hosts"
echo '/dev/vda / ext4 defaults 0 0' >"$root/etc/fstab"
truncate -s 2G root.ext4.part
mkfs.ext4 -q -F -d "$root" root.ext4.part
mv root.ext4.part root.ext4
