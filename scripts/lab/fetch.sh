#!/usr/bin/env bash
# Fetches what the virtual machines need, once: kernels of Debian and Ubuntu, busybox and a small
# Debian. Nothing of it is installed on this machine; APT gets folders of its own.
#
#     scripts/lab/fetch.sh LAB SERIES ...        such as 5.15, 6.1, 6.8, 6.12, 6.18
#
# The newest kernel of each series is taken.
set -euo pipefail

(($# >= 2)) || { echo "usage: fetch.sh LAB SERIES ..." >&2; exit 2; }
mkdir -p "$1"
cd "$1"
shift
lab=$PWD
mkdir -p apt/{lists/partial,archives/partial} packages

apt_of_its_own() {
	local command=$1
	shift
	"$command" -q -o Dir::Etc::SourceList="$lab/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$lab/apt/lists" -o Dir::Cache="$lab/apt" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

write_sources() {
	local debian=/usr/share/keyrings/debian-archive-keyring.gpg ubuntu=$lab/ubuntu/usr/share/keyrings/ubuntu-archive-keyring.gpg
	local mirror=http://deb.debian.org
	cat >apt/sources.list <<-EOF
		deb [arch=amd64 signed-by=$debian] $mirror/debian bookworm main
		deb [arch=amd64 signed-by=$debian] $mirror/debian-security bookworm-security main
		deb [arch=amd64 signed-by=$debian] $mirror/debian trixie main
		deb [arch=amd64 signed-by=$debian] $mirror/debian trixie-backports main
	EOF
	if [[ -f $ubuntu ]]; then
		cat >>apt/sources.list <<-EOF
			deb [arch=amd64 signed-by=$ubuntu] http://archive.ubuntu.com/ubuntu jammy-updates main
			deb [arch=amd64 signed-by=$ubuntu] http://archive.ubuntu.com/ubuntu noble-updates main
		EOF
	fi
	apt_of_its_own apt-get update >apt/log 2>&1 || { cat apt/log >&2; exit 1; }
}

# FOLDER PACKAGE ...: their files, without their scripts.
unpack() {
	local folder=$1 package
	shift
	rm -rf "$folder.part"
	for package; do
		echo "== fetching $package"
		(cd packages && apt_of_its_own apt-get download "$package" >/dev/null)
		dpkg-deb -x packages/"$package"_*.deb "$folder.part"
		rm packages/"$package"_*.deb
	done
	mv "$folder.part" "$folder"
}

newest() {
	apt_of_its_own apt-cache search --names-only "$1" | awk '{ print $1 }' | sort -V | tail -1
}

# Ubuntu's are asked for only where Debian has none.
fetch_kernel() {
	local series=$1 name
	name=$(newest "^linux-image-${series//./\\.}\.[0-9.-]*(\+deb[0-9]*)?-cloud-amd64\$")
	if [[ $name ]]; then
		unpack "kernel-$series" "$name"
		return
	fi
	[[ -d ubuntu ]] || { unpack ubuntu ubuntu-keyring; write_sources; }
	name=$(newest "^linux-image-${series//./\\.}\.0-[0-9]*-generic\$")
	[[ $name ]] || { echo "neither Debian nor Ubuntu has a package of Linux $series" >&2; exit 1; }
	unpack "kernel-$series" "$name" "${name/image/modules}"
}

missing=()
for series; do [[ -d kernel-$series ]] || missing+=("$series"); done
if ((${#missing[@]})) || [[ ! -d busybox ]]; then
	write_sources
	[[ -d busybox ]] || unpack busybox busybox-static
	for series in "${missing[@]}"; do fetch_kernel "$series"; done
fi
if [[ ! -d debian ]]; then
	echo "== making a small Debian (a minute or two, once)"
	rm -rf debian.part
	mmdebstrap --quiet --variant=minbase \
		--include=systemd,systemd-sysv,systemd-container,udev,kmod,procps,util-linux,e2fsprogs \
		bookworm debian.part
	mv debian.part debian
fi
