#!/usr/bin/env bash
# How long `whylag doctor` takes: for the host, and for a process with 300 libraries and 51,000
# slots of their PLTs, most of them unbound.
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

LIBRARIES=300
# Imports of each.
FUNCTIONS=170

begin doctor seconds
need cc jq
need_whylag

# libtarget.so has the functions; libone.so calls each, and 20 of them when it is touched.
for ((n = 0; n < FUNCTIONS; n++)); do echo "void g$n(void) {}"; done >"$TMP/target.c"
{
	for ((n = 0; n < FUNCTIONS; n++)); do echo "void g$n(void);"; done
	echo "static void pick(int n) { switch (n) {"
	for ((n = 0; n < FUNCTIONS; n++)); do echo "case $n: g$n(); break;"; done
	echo "} }"
	echo "void touch(void) { for (volatile int n = 0; n < 20; n++) pick(n * 8); }"
} >"$TMP/one.c"
cc -O1 -shared -fPIC -o "$TMP/libtarget.so" "$TMP/target.c"
cc -O1 -shared -fPIC -Wl,-z,lazy -o "$TMP/libone.so" "$TMP/one.c" -L"$TMP" -ltarget \
	-Wl,-rpath,"$TMP"
cc -O1 -pthread -o "$TMP/loader" "$HERE/../crates/inspect/tests/programs/loader.c"

# Another file is another library to the dynamic linker.
libraries=()
for ((n = 0; n < LIBRARIES; n++)); do
	cp "$TMP/libone.so" "$TMP/lib$n.so"
	libraries+=("$TMP/lib$n.so")
done
mkfifo "$TMP/in" "$TMP/ready"
exec 3<>"$TMP/in" 4<>"$TMP/ready"
env -u LD_BIND_NOW "$TMP/loader" 0 0 "${libraries[@]}" <&3 >&4 &
LOADER=$!
at_exit kill "$LOADER"
read -r -N 1 -u 4

measured() {
	case $1 in
	host) seconds_of "$WHYLAG" doctor ;;
	process) seconds_of "$WHYLAG" doctor -p "$LOADER" ;;
	plt) seconds_of "$WHYLAG" doctor -p "$LOADER" --plt ;;
	esac
}

run_rounds measured host process plt
"$WHYLAG" doctor -p "$LOADER" --plt --json |
	jq -r '"\(length) files, \(map(.slots) | add) slots, \(map(.symbols | length) | add) not bound yet"'
table host process plt
goal "doctor of this host" "$(figures host | median)" 1 s
goal "doctor of this host and of a process with $LIBRARIES libraries" "$(figures process | median)" 1 s
