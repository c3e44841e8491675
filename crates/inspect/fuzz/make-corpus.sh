#!/usr/bin/env bash
# make-corpus.sh: makes the ELF files of corpus/elf that the tests and the fuzzer begin with.
# Needs gcc, clang-19 and the linker that comes with Rust; the files are kept in the repository, so
# that the tests do not.
set -euo pipefail

cd "$(dirname "$0")"
out=corpus/elf
lld="$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

# gcc_library NAME OPTION...
gcc_library() {
	gcc -O1 -fPIC -shared -nostdlib -Wl,--build-id=none,-z,noseparate-code,-soname,librate.so \
		-o "$out/$1" "${@:2}" source/rate.c
}

# lld_library NAME TARGET COMPILER_OPTION LINKER_OPTION...
lld_library() {
	clang-19 --target="$2" -O1 -fPIC "$3" -c source/rate.c -o "$objects/rate.o"
	"$lld" -flavor gnu -shared -soname librate.so --build-id=none -o "$out/$1" "${@:4}" \
		"$objects/rate.o"
}

gcc_library x86-lazy.so -fcf-protection=none -Wl,-z,lazy
gcc_library x86-lazy-stripped.so -fcf-protection=none -Wl,-z,lazy -s
gcc_library x86-ibt.so -fcf-protection=full -Wl,-z,lazy,-z,ibtplt
gcc_library x86-now.so -fcf-protection=none -Wl,-z,now
gcc_library x86-no-plt.so -fcf-protection=none -fno-plt -Wl,-z,lazy
lld_library x86-lld.so x86_64-linux-gnu -O1 -z lazy
lld_library arm-lazy.so aarch64-linux-gnu -O1 -z lazy
lld_library arm-bti.so aarch64-linux-gnu -mbranch-protection=bti -z lazy -z force-bti
lld_library arm-now.so aarch64-linux-gnu -O1 -z now
lld_library arm-no-plt.so aarch64-linux-gnu -fno-plt -z lazy
lld_library i386.so i386-linux-gnu -O1 -z lazy
lld_library arm-big-endian.so aarch64_be-linux-gnu -O1 -z lazy
gcc -O1 -fcf-protection=none -nostdlib -static-pie -fpie -Wl,--build-id=none,-z,noseparate-code \
	-o $out/static-pie source/static.c
gcc -O1 -fcf-protection=none -nostdlib -static -no-pie -Wl,--build-id=none,-z,noseparate-code \
	-o $out/static source/static.c
# As sstrip leaves it: no section headers at all.
{
	head -c 40 $out/x86-lazy-stripped.so
	head -c 8 /dev/zero
	tail -c +49 $out/x86-lazy-stripped.so | head -c 12
	head -c 4 /dev/zero
	tail -c +65 $out/x86-lazy-stripped.so
} >"$objects/bare"
mv "$objects/bare" $out/x86-no-sections.so
chmod 644 $out/*
