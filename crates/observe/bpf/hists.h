/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Histograms: one for each process and kind of value, without atomics because
 * each CPU has its own, and who gets a slot for one.
 */
#ifndef WHYLAG_HISTS_H
#define WHYLAG_HISTS_H

#include "state.h"

u32 hist_next = 1;	/* next slot that was never used; 0 means none */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct hist_key);
	__type(value, u32);
} hist_index SEC(".maps");

/* Slot s has two halves, 2 s and 2 s + 1; the loader sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct hist);
} hists SEC(".maps");

/*
 * Slots of processes that have ended, which the recorder gives back: a bit each.
 * No map: what runs when a lock was waited for would wait for the map's own.
 */
u64 free_hists[HIST_SLOTS_MAX / 64];

#define LOG2_2(n)	n, n
#define LOG2_8(n)	LOG2_2(n), LOG2_2(n), LOG2_2(n), LOG2_2(n)
#define LOG2_32(n)	LOG2_8(n), LOG2_8(n), LOG2_8(n), LOG2_8(n)

static const u8 log2_of_byte[256] = {
	0, 0, LOG2_2(1), LOG2_2(2), LOG2_2(2), LOG2_8(3), LOG2_8(4), LOG2_8(4), LOG2_32(5),
	LOG2_32(6), LOG2_32(6), LOG2_32(7), LOG2_32(7), LOG2_32(7), LOG2_32(7),
};

/*
 * floor(log2 v) for v > 0. BPF has no instruction that counts leading zeros; what the compiler makes of
 * __builtin_clzll() takes 12 ns. Only in functions that are verified apart: each branch doubles that.
 */
static __always_inline u32 log2_u64(u64 v)
{
	u32 log2 = 0;

	if (v >> 32) {
		v >>= 32;
		log2 = 32;
	}
	if (v >> 16) {
		v >>= 16;
		log2 += 16;
	}
	if (v >> 8) {
		v >>= 8;
		log2 += 8;
	}
	return log2 + log2_of_byte[v & 255];
}

/* shift = max(0, floor(log2 v) - p); index = (shift << p) + (v >> shift). */
static __always_inline u32 hist_bucket(u64 v)
{
	u32 shift = 0, index;

	if (v >> (HIST_PRECISION + 1))
		shift = log2_u64(v) - HIST_PRECISION;
	index = (shift << HIST_PRECISION) + (u32)(v >> shift);
	return index < HIST_BUCKETS ? index : HIST_BUCKETS - 1;
}

/* It has many paths for the verifier, so it is inlined only where a call, 5 to 10 ns, is worth that. */
static __always_inline void count_here(u32 slot, u64 v)
{
	u32 index = slot * 2 + (epoch & 1), bucket;
	struct hist *h;

	if (!slot)
		return;
	h = bpf_map_lookup_elem(&hists, &index);
	if (!h)
		return;
	bucket = hist_bucket(v);
	if (bucket < HIST_BUCKETS)
		h->buckets[bucket]++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
	if (~v > h->inverse_min)
		h->inverse_min = ~v;
}

/* Not static, as hold_class. */
__noinline int hist_count(u32 slot, u64 v)
{
	count_here(slot, v);
	return 0;
}

static __always_inline u64 *free_hists_at(u32 slot)
{
	return &free_hists[slot / 64 & (HIST_SLOTS_MAX / 64 - 1)];
}

/*
 * A command that starts dozens of processes first leaves histograms for its
 * ports, and one that calls hundreds of peers leaves some for all else.
 */
static __always_inline u32 hists_of_processes(void)
{
	return hist_slots / 2 / 4 * 3;
}

static __always_inline u32 hists_of_services(void)
{
	return hist_slots / 2 / 8 * 7;
}

/* For services: what they may use has been used, and none of it is free again. */
static __always_inline bool hists_are_scarce(void)
{
	u32 i;

	if (hist_next <= hists_of_services())
		return false;
	for (i = 0; i < HIST_SLOTS_MAX; i += 64) {
		if (*free_hists_at(i))
			return false;
	}
	return true;
}

/* A slot that was given back, of the 64 from `first` on; 0: there is none. Not static, as hold_class. */
__noinline u32 freed_hist_from(u32 first)
{
	u64 *word = free_hists_at(first), one = *word & -*word;

	return one && __sync_fetch_and_and(word, ~one) & one ? first + log2_u64(one) : 0;
}

/* A slot that was given back, 0: there is none. Not static, as hold_class. */
__noinline u32 freed_hist(void)
{
	u32 i, slot;

	for (i = 0; i < HIST_SLOTS_MAX; i += 64) {
		slot = freed_hist_from(i);
		if (slot)
			return slot;
	}
	return 0;
}

static __always_inline void give_hist_back(u32 slot)
{
	__sync_fetch_and_or(free_hists_at(slot), 1ULL << (slot & 63));
}

/* A slot that was given back, or one of the first three quarters; 0: neither. */
static __always_inline u32 own_hist(void)
{
	u32 slot = freed_hist();

	if (slot)
		return slot;
	return hist_next > hists_of_processes() ? 0 : __sync_fetch_and_add(&hist_next, 1);
}

/* One of the last quarter; 0 when all are taken. */
static __always_inline u32 last_hist(void)
{
	/* Tested first: a number that only grows would wrap, and give out slot 1 again. */
	if (hist_next >= hist_slots / 2)
		return 0;
	return __sync_fetch_and_add(&hist_next, 1);
}

/*
 * Slot of a histogram, given out on first use. When no process can have one
 * of its own they share theirs (tgid 0): coarser, but nothing lost. When all
 * are taken the value is counted as lost.
 */
__noinline u32 hist_slot(u32 tgid, u32 kind, u64 id)
{
	struct hist_key key = { .tgid = tgid, .kind = kind, .id = id };
	u32 *known = bpf_map_lookup_elem(&hist_index, &key);
	u32 slot;

	if (known)
		return *known;
	slot = own_hist();
	if (!slot) {
		key.tgid = 0;
		known = bpf_map_lookup_elem(&hist_index, &key);
		if (known)
			return *known;
		slot = last_hist();
	}
	if (!slot || slot >= hist_slots / 2) {
		lost(LOSS_HISTOGRAM);
		return 0;
	}
	if (bpf_map_update_elem(&hist_index, &key, &slot, BPF_NOEXIST)) {
		/* Another CPU came first. */
		give_hist_back(slot);
		known = bpf_map_lookup_elem(&hist_index, &key);
		if (known)
			return *known;
		lost(LOSS_HISTOGRAM);
		return 0;
	}
	return slot;
}

#endif
