#!/usr/bin/env bash
# install-deps.sh GROUP...: installs the missing Debian packages of the groups (build, test, java,
# page, lint, lab, servers); without root, or without apt-get, says what to install and fails.
set -euo pipefail

# For each group the commands that it needs, and the packages that have them.
packages_of() {
	case $1 in
	build)
		# All but clang-19 are for the vendored libbpf and libelf.
		echo clang-19=clang-19 cc=gcc make=make pkg-config=pkg-config autoreconf=autoconf \
			aclocal=automake autopoint=autopoint libtoolize=libtool m4=m4 bison=bison \
			flex=flex gawk=gawk msgfmt=gettext
		;;
	test)
		echo script=bsdutils c++=g++ readelf=binutils strace=strace perf=linux-perf mkfs.ext4=e2fsprogs \
			musl-gcc=musl-tools
		packages_of java
		;;
	# Java 17 or later.
	java) echo javac=default-jdk-headless mvn=maven ;;
	# Node 20.19 or later.
	page) echo chromium=chromium node=nodejs npm=npm curl=curl ;;
	lint) echo shellcheck=shellcheck jq=jq ;;
	stories) echo jq=jq && packages_of page ;;
	lab)
		echo qemu-system-x86_64=qemu-system-x86 mmdebstrap=mmdebstrap cpio=cpio \
			zstd=zstd xz=xz-utils mkfs.ext4=e2fsprogs
		;;
	servers)
		echo postgres=postgresql psql=postgresql pgbouncer=pgbouncer mariadbd=mariadb-server \
			sqlite3=sqlite3 redis-server=redis-server memcached=memcached nginx=nginx-light \
			haproxy=haproxy lighttpd=lighttpd apache2=apache2 php-fpm8.2=php8.2-fpm \
			gunicorn=gunicorn mosquitto=mosquitto mosquitto_pub=mosquitto-clients \
			nats-server=nats-server beanstalkd=beanstalkd ruby=ruby etcd=etcd-server \
			unbound=unbound dnsmasq=dnsmasq-base named=bind9 dnsperf=dnsperf rsync=rsync node=nodejs \
			go=golang-go javac=default-jdk-headless varnishd=varnish squid=squid influxd=influxdb \
			stunnel=stunnel4 rsyslogd=rsyslog gearmand=gearman-job-server gearadmin=gearman-tools \
			slapd=slapd ldapsearch=ldap-utils
		;;
	aarch64) echo aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu ;;
	*)
		echo "$(basename "$0"): no group '$1'; there are build, test, java, page, lint, stories, lab, servers and aarch64" >&2
		return 1
		;;
	esac
}

# mkfs.ext4 and servers are where only root looks; PostgreSQL has a folder for each version.
PATH=$PATH:/usr/sbin:/sbin
for folder in /usr/lib/postgresql/*/bin; do PATH=$PATH:$folder; done

missing=()
for group in "$@"; do
	packages=$(packages_of "$group")
	for entry in $packages; do
		[[ -n $(type -P "${entry%%=*}") ]] || missing+=("${entry#*=}")
	done
done
# gcc alone has no C library headers.
[[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)
if [[ " $* " == *" aarch64 "* && ! -e /usr/aarch64-linux-gnu/include/stdio.h ]]; then
	missing+=(libc6-dev-arm64-cross)
fi
if [[ " $* " == *" servers "* && ! -e /usr/share/java/tomcat10-annotations-api.jar ]]; then
	missing+=(libtomcat10-embed-java libtomcat10-java)
fi
if [[ " $* " == *" servers "* && ! -e /usr/lib/python3/dist-packages/grpc ]]; then
	missing+=(python3-grpcio)
fi

((${#missing[@]})) || exit 0
install="apt-get install -y --no-install-recommends ${missing[*]}"
if [[ -z $(type -P apt-get) ]]; then
	echo "missing; what Debian calls: ${missing[*]}" >&2
	exit 1
elif ((EUID != 0)); then
	printf 'missing: %s\nInstall them with\n\n    sudo apt-get update\n    sudo %s\n\n' \
		"${missing[*]}" "$install" >&2
	exit 1
fi
echo "== installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Debian starts each server that is installed, unless this says no.
policy=/usr/sbin/policy-rc.d
if [[ " $* " == *" servers "* && ! -e $policy ]]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
fi
apt-get update -q
$install
