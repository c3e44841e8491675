/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Who made whom wait. A wait that a watched thread ended is divided by what
 * that thread did meanwhile: it ran, it was ready, it slept itself. Each
 * thread remembers its last absences from the CPU, with how they were divided
 * when they ended; so the parts of a wait are those at the far end of the
 * chain, however long it is, and the work at each wake-up is bounded.
 */
#ifndef WHYLAG_CHAINS_H
#define WHYLAG_CHAINS_H

#include "state.h"

#define SHARE_BITS	16

/* What ends a wait that no watched thread ended. */
static __always_inline u32 leaf_end(struct thread *t)
{
	switch (t->open) {
	case ACCT_DISK:
	case ACCT_DIRTY_THROTTLE:
		return END_DISK;
	case ACCT_FAULT_MAJOR:
		return END_FAULT;
	case ACCT_TIMER:
		return END_TIMER;
	case ACCT_STOPPED:
		return END_STOPPED;
	case ACCT_MMAP_LOCK_READ:
	case ACCT_MMAP_LOCK_WRITE:
	case ACCT_RWSEM:
	case ACCT_MUTEX:
	case ACCT_RT_MUTEX:
	case ACCT_OTHER_LOCK:
	case ACCT_FAULT_MINOR:
	case ACCT_UNINTERRUPTIBLE:
		return END_KERNEL;
	}
	if (t->timer.fired)
		return END_TIMER;
	return t->waker_context == CTX_TASK ? END_UNWATCHED : END_OUTSIDE;
}

/* These end as they do whoever runs the last step. */
static __always_inline bool is_leaf(u32 account)
{
	return account == ACCT_DISK || account == ACCT_DIRTY_THROTTLE ||
	       account == ACCT_FAULT_MAJOR || account == ACCT_TIMER ||
	       account == ACCT_STOPPED;
}

static __always_inline void add_end(struct thread *t, u32 end, u64 ns, u32 tid)
{
	t->ends[end] += ns;
	if (ns > t->end_ns) {
		t->end_ns = ns;
		t->end_tid = tid;
		t->end = end;
	}
}

/* Divides a part of a wait, of `ns`, as the sleep at its end was divided. Not static, as hold_class. */
__noinline int divide_sleep(struct thread *t, struct step *step, u64 ns)
{
	u64 part, rest = ns;
	u32 k;

	if (!t || !step)
		return 0;
	for (k = 1; k < END_MAX; k++) {
		part = ns * step->shares[k] >> SHARE_BITS;
		if (part > rest)
			part = rest;
		add_end(t, k, part, step->end_tid);
		rest -= part;
	}
	t->ends[END_UNKNOWN] += rest;
	return 0;
}

/*
 * Divides the wait of `t` until `to` by what `waker` did from its absence `step` on. Up to when is
 * the rest? Not static, as hold_class.
 */
__noinline u64 divide_step(struct thread *t, struct thread *waker, struct step *step, u64 to)
{
	u64 from, begin;

	if (!t || !waker || !step)
		return to;
	from = t->off_since;
	begin = step->on ? step->on : waker->first_ns;
	if (begin < from)
		begin = from;
	if (to > begin) {
		add_end(t, END_CPU, to - begin, waker->tid);
		to = begin;
	}
	if (!step->on)
		return to;
	begin = step->wake > from ? step->wake : from;
	if (to > begin) {
		add_end(t, step->throttled ? END_THROTTLED : END_RUN_QUEUE, to - begin,
			waker->tid);
		to = begin;
	}
	begin = step->from > from ? step->from : from;
	if (to > begin) {
		divide_sleep(t, step, to - begin);
		to = begin;
	}
	return to;
}

/*
 * Puts into t->ends what `waker`, which runs here, did from when `t` went to
 * sleep until now. Nobody else changes the two: `t` is asleep and woken by
 * this CPU alone, and the history of a thread grows on its own CPU.
 */
static __noinline int divide_wait(struct thread *t, struct thread *waker, u64 now)
{
	u64 to = now;
	u32 i;

	for (i = 0; i < STEPS && to > t->off_since; i++) {
		struct step *step = &waker->steps[(waker->steps_head - 1 - i) & (STEPS - 1)];

		to = divide_step(t, waker, step, to);
		if (!step->on)
			break;
	}
	if (to > t->off_since)
		t->ends[END_UNKNOWN] += to - t->off_since;
	return 0;
}

/* Divides the wait of `t`, which is woken now, here. */
static __always_inline void end_wait(struct cpu *cpu, struct thread *t, u64 now)
{
	struct thread *waker = NULL;

	if (t->waker_context == CTX_TASK && !is_leaf(t->open))
		waker = this_thread(cpu);
	if (waker)
		divide_wait(t, waker, now);
	else
		add_end(t, leaf_end(t), now - t->off_since, t->tid);
}

/* The oldest absences are remembered together, as long as they are of this time. */
#define TOGETHER_NS	50000000

/* A division for all shares of a time: `one` is 2^40 by it, and no part of it is longer. */
static __always_inline u64 share_of(u64 ns, u64 one)
{
	u64 share = ns * one >> (40 - SHARE_BITS);

	return share < 1 << SHARE_BITS ? share : (1 << SHARE_BITS) - 1;
}

/* Two shares, each of a part of a time, as one of the whole. Not static, as hold_class. */
__noinline u32 merged_share(u64 one, u64 of_one, u64 other, u64 of_other, u64 more)
{
	u64 share = ((one * of_one + other * of_other) >> SHARE_BITS) + more;

	return share < 1 << SHARE_BITS ? share : (1 << SHARE_BITS) - 1;
}

/*
 * Before the oldest absence is forgotten, the next takes it in, with the time
 * on a CPU between the two. A turn with many short waits would take the whole
 * history, and what was before it not be known.
 */
static __noinline int merge_oldest(struct thread *t)
{
	struct step *old = &t->steps[t->steps_head & (STEPS - 1)];
	struct step *next = &t->steps[(t->steps_head + 1) & (STEPS - 1)];
	u64 all = next->wake - old->from, one, of_old, of_next, ran, queued, throttled;
	u32 k;

	if (!old->on || old->wake < old->from || old->on < old->wake || next->wake < next->from ||
	    old->on > next->from || next->wake <= old->from || all > TOGETHER_NS)
		return 0;
	one = (1ULL << 40) / all;
	of_old = share_of(old->wake - old->from, one);
	of_next = share_of(next->wake - next->from, one);
	queued = share_of(old->on - old->wake, one);
	ran = share_of(next->from - old->on, one);
	throttled = old->throttled ? queued : 0;
	for (k = 0; k < END_MAX; k++) {
		u64 more = k == END_CPU ? ran :
			   k == END_RUN_QUEUE ? queued - throttled :
			   k == END_THROTTLED ? throttled : 0;

		next->shares[k] = merged_share(old->shares[k], of_old, next->shares[k],
					       of_next, more);
	}
	/* Who was at the end of the largest part. */
	if (ran + queued > of_old && ran + queued > of_next)
		next->end_tid = t->tid;
	else if (of_old > of_next)
		next->end_tid = old->end_tid;
	next->from = old->from;
	return 0;
}

/* Remembers the absence from the CPU that ends now. */
__noinline int keep_step(struct thread *t, bool slept, u64 now)
{
	struct step *step;
	u64 ns;
	u32 k;

	if (!t)
		return 0;
	merge_oldest(t);
	step = &t->steps[t->steps_head++ & (STEPS - 1)];
	ns = t->wake_ns - t->slept_from;
	step->from = t->slept_from;
	step->wake = t->wake_ns;
	step->on = now;
	step->throttled = t->off_account == ACCT_THROTTLED;
	step->end_tid = t->end_tid;
	if (!slept || !ns)
		return 0;
	for (k = 0; k < END_MAX; k++) {
		u64 part = t->ends[k];

		if (part >= ns)
			step->shares[k] = (1 << SHARE_BITS) - 1;
		else
			step->shares[k] = part ? (part << SHARE_BITS) / ns : 0;
	}
	return 0;
}

#endif
