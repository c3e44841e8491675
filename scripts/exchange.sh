#!/usr/bin/env bash
# exchange.sh WHYLAG [OPTION...]: runs the traced exchange of java/exchange for 20 s under whylag and
# prints where its orders spent their time, and what made the slowest of them slow. The options are
# those of the exchange: its faults, for example.
#
# The journal of the exchange is on a file system of its own, ext4 on a loop device, so that its
# syncs wait for a journal on every host. It is mounted in a namespace of this script, and goes
# when the script ends, however it ends.
set -euo pipefail

if [[ ${OWN_MOUNTS:-} != yes ]]; then
	OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
fi
WHYLAG=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
SLOWEST=20

folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-exchange.XXXXXX")
export WHYLAG_STORE=$folder/whylag.db
truncate -s 1G "$folder/image"
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=1 "$folder/image"
mkdir "$folder/disk"
mount -o loop,barrier=0 "$folder/image" "$folder/disk"
# The loop device has it open.
rm "$folder/image"
trap 'umount "$folder/disk"; rmdir "$folder/disk"' EXIT

echo "== the exchange, 20 s${*:+, with $*}"
preload=
if [[ " $* " == *" --chatty-clock "* ]]; then
	echo "   on a host whose clock is slow, as mysteries/slow-clocksource makes it: elsewhere reading it costs nothing"
	preload=$PWD/mysteries/bin/slow-clocksource.so
fi
LD_PRELOAD=$preload "$WHYLAG" record --follow -- java/exchange/run.sh --folder "$folder/disk" --seconds 20 "$@" 2>&1 |
	sed -n '1,/^engine: [0-9]/p; /^Messages of/,$p'

# The first cause that each explanation in standard input names.
causes() {
	awk '/^1\. [a-z-]+: / { sub(/:$/, "", $2); number[$2]++ }
		END { for (cause in number) printf "%6d  %s\n", number[cause], cause }' | sort -rn
}

echo
echo "== what made the $SLOWEST slowest orders slow: how many have it as first cause"
for order in $(seq "$SLOWEST"); do
	# Fewer may have been slow.
	"$WHYLAG" explain --message "$order" 2>/dev/null || break
done | causes
echo "== and the causes over the whole run, all processes of the exchange together"
"$WHYLAG" explain | awk '
	/^[0-9]+\. / { print "  " $0; getline; if (!/explains/) { print "  " $0; getline }; print "  " $0 }'
echo
echo "The run is in $WHYLAG_STORE:"
echo "    ${WHYLAG#"$PWD/"} --store $WHYLAG_STORE explain --message 1"
