/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The kernel says itself what its functions are called: that takes no list of all of them, which is
 * 5 MB and 75 ms, and is not hidden as that is (kernel.kptr_restrict).
 */
#include "kernel.h"
#include "wire.h"

/* What the recorder asks for; 0: nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYMBOLS_AT_ONCE);
	__type(key, u32);
	__type(value, u64);
} symbol_addresses SEC(".maps");

/* A line for each: function+0x1/0x20 [module], or the address in hexadecimal. */
SEC("iter/bpf_map_elem")
int show_symbols(struct bpf_iter__bpf_map_elem *ctx)
{
	u64 *address = ctx->value;

	if (address && *address)
		BPF_SEQ_PRINTF(ctx->meta->seq, "%pS\n", *address);
	return 0;
}
