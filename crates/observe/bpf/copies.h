/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Copies of the top of user stacks. Code without frame pointers ends the walk
 * (bpf_get_stack) early: who called is then found by the recorder, from the
 * words of the stack and the tables that the files have for exceptions.
 *
 * So many a second and no more, each of a fixed size. When they run short,
 * stacks that were met seldom come first.
 */
#ifndef WHYLAG_COPIES_H
#define WHYLAG_COPIES_H

#include "python.h"
#include "rings.h"

/* 16 of 8 KiB in 62.5 ms: 2 MiB a second. */
#define COPIES_PERIOD_NS	62500000
#define COPIES_IN_PERIOD	16

/* While copies are short: the first of each stack, and then one in so many. */
#define MET_SELDOM	8
#define MET_MASK	63

u64 copies_since;	/* when the period began */
s64 copies_left;	/* in it */
u64 copies_made;
u64 copies_left_out;

/* The words from `sp` on, as far as they are in memory. */
static __always_inline void copy_words(struct words_record *r, u64 sp)
{
	u64 from = sp & ~(WORDS_PIECE * sizeof(u64) - 1);
	u32 i, count = 0;

	r->first = (sp - from) / sizeof(u64);
	for (i = 0; i < WORDS_PIECES; i++) {
		if (bpf_probe_read_user(r->words + i * WORDS_PIECE,
					WORDS_PIECE * sizeof(u64),
					(void *)(from + i * WORDS_PIECE * sizeof(u64))))
			break;
		count = (i + 1) * WORDS_PIECE;
	}
	r->count = count;
}

static __always_inline void copy_entries(struct words_record *r)
{
	u32 i;

	for (i = 0; i < WORDS_ENTRIES; i++)
		r->entries[i] = pythons ? python_entry(i) : 0;
}

static __always_inline bool is_seldom(u32 met)
{
	return met <= MET_SELDOM || !(met & MET_MASK);
}

/* One of the copies of this period, if it leaves `spare`. */
static __always_inline bool take_copy(u64 now, s64 spare)
{
	u64 since = copies_since;

	if ((s64)(now - since) >= COPIES_PERIOD_NS &&
	    __sync_val_compare_and_swap(&copies_since, since, now) == since)
		copies_left = COPIES_IN_PERIOD;
	return copies_left > spare && __sync_fetch_and_add(&copies_left, -1) > 0;
}

/* Whether a stack that was met so often is copied now. */
static __always_inline bool may_copy(u32 met, u64 now, bool sampled)
{
	if (!CAN_UNWIND || met == STACK_WHOLE)
		return false;
	/* Samples only have what intervals leave, and are as good without. */
	if (sampled)
		return is_seldom(met) && take_copy(now, COPIES_IN_PERIOD / 2);
	if (take_copy(now, is_seldom(met) ? 0 : COPIES_IN_PERIOD / 2))
		return true;
	__sync_fetch_and_add(&copies_left_out, 1);
	return false;
}

/* Copies the current task's user stack, which the walk calls `walked`; 0 if not now. */
__noinline u64 copy_stack(u64 walked, bool sampled)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u64 now = bpf_ktime_get_ns();
	struct words_record *r;
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t = current_thread();
	u64 id;

	if (!cpu || !t || !walked || !may_copy(cpu->stack_met, now, sampled))
		return 0;
	/* In the same ring before the interval that refers to it. */
	r = reserve(&outliers, sizeof(*r));
	if (!r) {
		__sync_fetch_and_add(&copies_left_out, 1);
		return 0;
	}
	id = sampled ? 0 : (now ^ (u64)t->tid << 32) * 0xff51afd7ed558ccdULL;
	r->type = RECORD_WORDS;
	r->tgid = t->tgid;
	r->id = id;
	r->walked = walked;
	r->ip = INSTRUCTION(regs);
	r->sp = STACK_TOP(regs);
	r->fp = FRAME_POINTER(regs);
	copy_entries(r);
	copy_words(r, r->sp);
	bpf_ringbuf_submit(r, ring_flags(&outliers));
	__sync_fetch_and_add(&copies_made, 1);
	return id;
}

/* The same once for each call: its stack stays as it is. */
static __always_inline u64 copy_here(struct thread *t, u64 walked)
{
	u64 id;

	if (t->call != NO_CALL && t->call_start && !calls_off && t->copied &&
	    t->copied_walk == walked && t->copied_call == t->call_start)
		return t->copied;
	id = copy_stack(walked, false);
	if (t->call != NO_CALL) {
		t->copied = id;
		t->copied_call = t->call_start;
		t->copied_walk = walked;
	}
	return id;
}

/* Of a sample: no interval refers to the copy, it makes the stack in the sums longer. */
static __always_inline void copy_sampled(u64 walked)
{
	if (walked)
		copy_stack(walked, true);
}

#endif
