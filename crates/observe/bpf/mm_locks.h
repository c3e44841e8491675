/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mmap_lock of watched address spaces: who holds it, and for how long it was
 * held in all by each (process, call, mode). A waiter reads these totals when
 * its wait begins and ends: the difference is what it waited for, exact even
 * for a thousand short holds.
 */
#ifndef WHYLAG_MM_LOCKS_H
#define WHYLAG_MM_LOCKS_H

#include "state.h"

#define HOLD_CLASSES	32	/* a power of two; the last one takes the rest */
#define HOLD_READERS	8
#define HOLDS_KEPT	8	/* recent long holds, to name a thread */

struct hold_class {
	u64 key;		/* class_key(), 0: free */
	u64 ns;
	char comm[16];
};

struct mm_lock {
	u32 tgid;
	u32 kept_head;
	struct hold_class classes[HOLD_CLASSES];
	struct hold writer;		/* since != 0: held */
	struct hold readers[HOLD_READERS];
	struct hold kept[HOLDS_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct mm_lock);
} mm_locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct hold_key);
	__type(value, struct hold_sum);
} hold_sums SEC(".maps");

/* What a new entry of mm_locks is copied from: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mm_lock);
} mm_lock_zero SEC(".maps");

/* Totals as a waiter saw them when its wait began. */
struct hold_snapshot {
	u64 ns[HOLD_CLASSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hold_snapshot);
} hold_snapshots SEC(".maps");

/* Room for the totals at the end of a wait, too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hold_snapshot);
} hold_scratch SEC(".maps");

static __always_inline u64 class_key(u32 tgid, u16 call, bool write)
{
	return (u64)tgid << 32 | (u32)call << 1 | write;
}

/*
 * Index of the class of `key`, taken if it is new. Here and below: not static,
 * so that the verifier checks the function once and not along every path to it.
 */
__noinline u32 hold_class(struct mm_lock *lock, u64 key)
{
	u32 start = (u32)((key * 0x9e3779b97f4a7c15ULL) >> 32), i;

	if (!lock)
		return HOLD_CLASSES - 1;
	for (i = 0; i < HOLD_CLASSES; i++) {
		u32 index = (start + i) & (HOLD_CLASSES - 1);
		struct hold_class *class = &lock->classes[index];

		if (index == HOLD_CLASSES - 1)
			continue;
		if (class->key == key)
			return index;
		if (!class->key &&
		    !__sync_val_compare_and_swap(&class->key, 0, key)) {
			bpf_get_current_comm(class->comm, sizeof(class->comm));
			return index;
		}
	}
	return HOLD_CLASSES - 1;
}

static __always_inline void add_in_progress(struct hold *hold, u64 now,
					    struct hold_snapshot *totals)
{
	u64 since = hold->since;

	if (since && since < now)
		totals->ns[hold->class & (HOLD_CLASSES - 1)] += now - since;
}

/* Time held so far by class, holds in progress included. */
__noinline int hold_totals(struct mm_lock *lock, u64 now,
				  struct hold_snapshot *totals)
{
	u32 i;

	if (!lock || !totals)
		return 0;
	for (i = 0; i < HOLD_CLASSES; i++)
		totals->ns[i] = lock->classes[i].ns;
	add_in_progress(&lock->writer, now, totals);
	for (i = 0; i < HOLD_READERS; i++)
		add_in_progress(&lock->readers[i], now, totals);
	return 0;
}

#endif
