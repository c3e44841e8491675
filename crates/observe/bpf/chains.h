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
#include "waits.h"

#define SHARE_BITS	16

static __always_inline u32 of_outside(struct thread *t)
{
	return t->waker_context == CTX_TASK ? END_UNWATCHED : END_OUTSIDE;
}

/* What ends a wait that no watched thread ended. */
static __always_inline u32 leaf_end(struct cpu *cpu, struct thread *t)
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
	/* An event loop looks after its own affairs meanwhile; it waits for events all the same. */
	if (t->open == ACCT_POLL && !t->asked)
		return t->timer.fired ? END_TIMER : of_outside(t);
	/*
	 * It may be a sleep (Thread.sleep of Java), or a look at what another thread has all along. No
	 * device wakes a futex: an interrupt does so when the time is over that the call was given.
	 */
	if (t->timer.fired || (t->open == ACCT_FUTEX && t->waker_context != CTX_TASK) ||
	    (cpu->in_hardirq && cpu->in_timer))
		return END_TIMEOUT;
	return of_outside(t);
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
	put_end(t, end, ns);
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
		part = step->only ? (step->only - 1 == k ? ns : 0) :
				    ns * step->shares[k] >> SHARE_BITS;
		if (!part)
			continue;	/* most sleeps have one end */
		if (part > rest)
			part = rest;
		add_end(t, k, part, step->end_tid);
		rest -= part;
	}
	if (rest)
		put_end(t, END_UNKNOWN, rest);
	return 0;
}

/*
 * Of what `t` has asked `waker` for nothing was to be done until somebody else asked, which is what
 * that one has in hand now. Who waits for a lock of such a one waits for what it has in hand all the time.
 */
static __always_inline bool had_nothing_to_do(struct thread *t, struct thread *waker,
					      struct step *step)
{
	return t->asked && (step->idle == IDLE_UNTIL_REQUEST ||
			    (step->idle == IDLE_FOR_NOW && waker->turn_for_request));
}

/*
 * Divides the wait of `t` until `to` by what `waker` did from its absence `step` on. Up to when is
 * the rest?
 */
static __always_inline u64 divide_step(struct thread *t, struct thread *waker,
				       struct step *step, u64 to)
{
	u64 from = t->off_since, begin;

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
		if (had_nothing_to_do(t, waker, step))
			add_end(t, END_IDLE, to - begin, waker->tid);
		else
			divide_sleep(t, step, to - begin);
		to = begin;
	}
	return to;
}

/* Not static, as hold_class. */
__noinline u64 divide_earlier_step(struct thread *t, struct thread *waker, struct step *step, u64 to)
{
	if (!t || !waker || !step)
		return to;
	return divide_step(t, waker, step, to);
}

/* A part of a time as a share of it. */
static __always_inline u16 share_of(u64 part, u64 ns)
{
	if (part >= ns)
		return (1 << SHARE_BITS) - 1;
	return part ? (part << SHARE_BITS) / ns : 0;
}

/* The absences before the last ones as a step. Not static, as hold_class. */
__noinline int work_out_past(struct thread *t)
{
	struct step *all;
	u64 ns;
	u32 k;

	if (!t)
		return 0;
	all = &t->past.all;
	ns = all->wake - all->from;
	for (k = 0; ns && k < END_MAX; k++)
		all->shares[k] = share_of(t->past.ends[k], ns);
	return 0;
}

/*
 * Puts into t->ends what `waker`, which runs here, did from when `t` went to
 * sleep until now. Nobody else changes the two: `t` is asleep and woken by
 * this CPU alone, and the history of a thread grows on its own CPU.
 */
__noinline int divide_wait(struct thread *t, struct thread *waker, u64 now)
{
	u64 to = now;
	u32 i;

	if (!t || !waker)
		return 0;
	for (i = 0; i < STEPS && to > t->off_since; i++) {
		struct step *step = &waker->steps[(waker->steps_head - 1 - i) & (STEPS - 1)];

		/* Most waits are within the last one: worth no call, and all in place would be dear to verify. */
		to = i ? divide_earlier_step(t, waker, step, to) : divide_step(t, waker, step, to);
		if (!step->on)
			break;
	}
	if (i == STEPS && to > t->off_since && waker->past.all.on) {
		work_out_past(waker);
		to = divide_earlier_step(t, waker, &waker->past.all, to);
	}
	if (to > t->off_since)
		put_end(t, END_UNKNOWN, to - t->off_since);
	return 0;
}

/* A socket tells of its data and wakes who waits for them at once. */
#define TELLS_NS	100000

/*
 * `t` is woken that may have had nothing to do: it waited for no answer to a call of its own, and no
 * thread lets it go on. An event loop looks after its own affairs now and then: what its turn is for is
 * remembered, too.
 */
static __always_inline void note_idle(struct cpu *cpu, struct thread *t, u64 now)
{
	bool polls = t->open == ACCT_POLL;

	t->idle = IDLE_NOT;
	if ((!polls && t->open != ACCT_SOCKET_RECEIVE) || t->asked)
		return;
	t->turn_for_request = 0;
	if (t->calls_open)
		return;
	if (now - cpu->request_at < TELLS_NS) {
		t->idle = IDLE_UNTIL_REQUEST;
		t->turn_for_request = 1;
	} else if (polls && t->waker_context != CTX_TASK) {
		t->idle = IDLE_FOR_NOW;
	}
}

/* Poll, select and epoll return when the time is over that they were given, and for a timerfd. */
static __always_inline void note_timed_poll(struct cpu *cpu, struct thread *t, u64 now)
{
	if (t->open != ACCT_POLL)
		return;
	t->poll_timed = t->timer.fired || (cpu->in_hardirq && cpu->in_timer);
	if (t->poll_timed)
		t->timed_ns += now - t->off_since;
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
		add_end(t, leaf_end(cpu, t), now - t->off_since, t->tid);
}

/* The absences before the last ones are remembered together, as long as they are of this time. */
#define TOGETHER_NS	50000000

static __always_inline void add_to_past(struct past *past, u32 end, u64 ns, u32 tid)
{
	past->ends[end] += ns;
	if (ns > past->longest_ns) {
		past->longest_ns = ns;
		past->all.end_tid = tid;
	}
}

/* Adds a sleep, divided as it was. */
static __always_inline void add_sleep_to_past(struct past *past, struct step *old)
{
	u64 ns = old->wake - old->from, rest = ns;
	u32 k, only = old->only;

	if (ns > past->longest_ns) {
		past->longest_ns = ns;
		past->all.end_tid = old->end_tid;
	}
	if (old->idle == IDLE_UNTIL_REQUEST)
		only = END_IDLE + 1;
	if (only) {
		only_end(past->ends, only - 1, ns);
		return;
	}
	for (k = 1; k < END_MAX && ns; k++) {
		u64 part = ns * old->shares[k] >> SHARE_BITS;

		if (part > rest)
			part = rest;
		past->ends[k] += part;
		rest -= part;
	}
	past->ends[END_UNKNOWN] += rest;
}

/*
 * Before an absence is forgotten, it is added to those before it, with the time on a CPU in between.
 * A turn with many short waits would take the whole history, and what was before it not be known.
 */
static __always_inline void join_past(struct thread *t, struct step *old)
{
	struct past *past = &t->past;
	struct step *all = &past->all;

	if (old->wake < old->from || old->on < old->wake)
		return;
	if (!all->on || all->on > old->from || old->wake - all->from > TOGETHER_NS) {
		__builtin_memset(past, 0, sizeof(*past));
		all->from = old->from;
	} else {
		add_to_past(past, all->throttled ? END_THROTTLED : END_RUN_QUEUE,
			    all->on - all->wake, t->tid);
		add_to_past(past, END_CPU, old->from - all->on, t->tid);
	}
	add_sleep_to_past(past, old);
	all->wake = old->wake;
	all->on = old->on;
	all->throttled = old->throttled;
}

/* What a sleep of `t` with one end was for those that wait for `t`: who has asked for an answer is not idle. */
static __always_inline u32 end_for_others(struct thread *t)
{
	return t->asked && (t->end == END_OUTSIDE || t->end == END_UNWATCHED) ? END_PEER : t->end;
}

/* Remembers the absence from the CPU that ends now. */
static __always_inline void keep_step(struct thread *t, bool slept, bool throttled, u64 now)
{
	struct step *step = &t->steps[t->steps_head & (STEPS - 1)];
	u64 ns = t->wake_ns - t->slept_from;
	u32 k;

	if (step->on)
		join_past(t, step);
	t->steps_head++;
	step->from = t->slept_from;
	step->wake = t->wake_ns;
	step->on = now;
	step->throttled = throttled;
	step->idle = slept ? t->idle : IDLE_NOT;
	step->end_tid = t->end_tid;
	step->only = 0;
	if (!slept || !ns)
		return;
	if (t->end_ns >= ns) {
		step->only = end_for_others(t) + 1;
		return;
	}
	for (k = 0; k < END_MAX; k++)
		step->shares[k] = share_of(end_of_wait(t, k), ns);
}

#endif
