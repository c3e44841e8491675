/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The kernel says itself what its functions are called: that takes no list of all of them, which is
 * 5 MB and 75 ms, and is not hidden as that is (kernel.kptr_restrict).
 */
#include "kernel.h"
#include "wire.h"

/* What the recorder asks for; behind the last one 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SYMBOLS_AT_ONCE);
	__type(key, u32);
	__type(value, u64);
} symbol_addresses SEC(".maps");

/*
 * A line for each: function+0x1/0x20 [module], or the address in hexadecimal. Of the tasks nothing
 * is needed: a walk over them is what each kernel has that can record at all (some refuse one over
 * the elements of a map), and its page has room for 32 KiB at each.
 */
SEC("iter/task")
int show_symbols(struct bpf_iter__task *ctx)
{
	u64 first = ctx->meta->seq_num * SYMBOLS_AT_TASK;
	u64 *address;
	u32 i, slot;

	if (!ctx->task)
		return 0;
	for (i = 0; i < SYMBOLS_AT_TASK; i++) {
		slot = first + i;
		address = bpf_map_lookup_elem(&symbol_addresses, &slot);
		if (!address || !*address)
			return 0;
		BPF_SEQ_PRINTF(ctx->meta->seq, "%pS\n", *address);
	}
	return 0;
}
