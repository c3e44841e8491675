#!/usr/bin/env bash
# Counts the instructions that whylag's programs run beside a server (asks.c), for each switch, in a virtual
# machine whose translator writes down each block of instructions that it runs. Unlike a time this is the
# same again and again; but it says nothing of what caches and memory take.
#
#     bench-peers/instructions.sh             of 'whylag record'; some 4 minutes
#     bench-peers/instructions.sh --cheap     of 'whylag record --cheap'
set -euo pipefail
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

begin instructions "instructions/switch"
need cc python3 mkfs.ext4
has_whylag || die "there is no $WHYLAG; make build makes it, or say where it is with WHYLAG"
top=$(dirname "$HERE")
lab=$(realpath -m "${WHYLAG_LAB:-$top/target/lab}")
(cd "$top" && scripts/install-deps.sh lab && scripts/lab/fetch.sh "$lab" 6.12 && scripts/lab/image.sh "$lab" 6.12)

job=$TMP/job
mkdir -p "$job/bin"
cp "$WHYLAG" "$job/bin/whylag"
strip -g "$job/bin/whylag"
cc -O2 -static -o "$job/bin/asks" "$HERE/asks.c"
cat >"$job/run.sh" <<-END
	#!/bin/sh
	cd /job/bin
	sysctl -qw net.core.bpf_jit_kallsyms=1
	./asks serve 2 & server=\$!
	WHYLAG_STORE=/root/whylag.db ./whylag record $* -p \$server --follow --time 20s >../out/record 2>&1 & recorder=\$!
	until grep -q '^whylag: recording' ../out/record; do sleep 0.2; done
	./asks ask 2 8 &
	sleep 5
	grep bpf_prog_ /proc/kallsyms >../out/symbols
	echo "in the midst of it"
	sleep 3
	kill -INT \$recorder
	wait
END

# Of the memory where programs are: the kernel's modules are there, too. Time in the guest goes by
# instructions, one a nanosecond, or the program would be in the way of a slower machine. With CMPXCHG16B
# that clock stops a guest of QEMU 7.2 with an error of its kernel.
export QEMU_OPTIONS="-cpu max,cx16=off -icount shift=0,sleep=off -monitor unix:$TMP/monitor,server,nowait
	-d in_asm -D $TMP/blocks -dfilter 0xffffffffa0000000..0xfffffffffeffffff"
QEMU_OPTIONS=${QEMU_OPTIONS//[$'\n\t']/ } "$top/scripts/lab/vm.sh" "$lab" 6.12 2 "$job" "$TMP/vm" nokaslr |
	while read -r line; do
		echo "$line" >&2
		[[ $line != "in the midst of it" ]] || python3 "$HERE/instructions.py" log "$TMP/monitor"
	done
grep '^off: ' "$TMP/vm/out/record" || true
python3 "$HERE/instructions.py" count "$TMP/vm/out/symbols" "$TMP/blocks" | tee "$TSV"
