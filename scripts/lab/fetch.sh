#!/usr/bin/env bash
# Fetches what the virtual machines need, once: kernels, busybox and a small Debian. Nothing of it
# is installed on this machine.
#
#     scripts/lab/fetch.sh LAB [SERIES ...]      a series is 6.1 or 6.12; the newest of each is taken
set -euo pipefail

(($# >= 2)) || { echo "usage: fetch.sh LAB SERIES ..." >&2; exit 2; }
lab=$1
shift
mkdir -p "$lab/packages"
cd "$lab"

newest_of() {
	apt-cache search --names-only "^linux-image-$1\.[0-9.-]*(\+deb[0-9]*)?-cloud-amd64\$" |
		awk '{ print $1 }' | sort -V | tail -1
}

# PACKAGE FOLDER: its files, without its scripts.
unpack() {
	[[ -d $2 ]] && return
	echo "== fetching $1"
	# APT's own user may not be able to write here; root then fetches by itself, and says so.
	(cd packages && apt-get download -q "$1" 2>&1 | sed '/^W: Download is performed unsandboxed/d')
	rm -rf "$2.part"
	dpkg-deb -x packages/"$1"_*.deb "$2.part"
	mv "$2.part" "$2"
	rm packages/"$1"_*.deb
}

unpack busybox-static busybox
for series; do
	package=$(newest_of "$series")
	[[ $package ]] || { echo "no package linux-image-$series.*-cloud-amd64: see apt-cache policy" >&2; exit 1; }
	unpack "$package" "kernel-$series"
done
if [[ ! -d debian ]]; then
	echo "== making a small Debian (a minute or two, once)"
	rm -rf debian.part
	mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,udev,procps,util-linux \
		bookworm debian.part
	mv debian.part debian
fi
