/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Threads that are woken: by whom, and what that one did while they waited.
 */
#include "threads.h"

/*
 * `waker` has had what `t` waits for since its own wait for it ended. Of that turn the length is
 * known, if `t` has waited all the time: else it may be part of another.
 */
static __always_inline void lock_turn_ends(struct thread *t, struct thread *waker, u64 now)
{
	u64 since = waker->lock_turn_since;

	if (!is_same_object(t->open, waker->lock_turn_object, t->object))
		return;
	if (t->off_since <= since && since < now) {
		t->lock_turn_ns = now - since;
		t->idle_turn = waker->turn_idle;
	}
	waker->turn_idle = 0;
	waker->lock_turn_object = 0;
}

/*
 * A thread whose life begins with a wait works for others: it is a worker, and whoever ends that
 * wait has something for it to do. Who has woken another, sent something or made a thread has
 * something to ask. An exit wakes those that wait for it, and asks nothing.
 */
static __always_inline void note_first_wait(struct thread *t, struct thread *waker, bool exits)
{
	const u64 for_work = 1ULL << ACCT_FUTEX | 1ULL << ACCT_PIPE_READ | 1ULL << ACCT_OTHER;

	if (t->fresh && !t->lock_like && (for_work >> (t->open & 63) & 1)) {
		if (!exits)
			t->first_waker = waker->tid;
		t->fresh = 0;
	}
	waker->fresh = 0;
}

/*
 * Whether one turn after the other took up most of the wait of `t`: so it is at a lock. Who is told of
 * news with others, as a broadcast of musl does, is let go on by one of them as well, but none had a
 * turn before the news.
 */
static __always_inline bool is_in_row(struct thread *t, struct thread *waker, u64 now)
{
	u64 since = now;

	if (waker->park_word)
		since = waker->turns_since > t->off_since ? waker->turns_since : t->off_since;
	t->turns_since = waker->park_word ? waker->turns_since : now;
	return now - since >= (now - t->off_since) / 2;
}

/*
 * A lock, or a token, goes from one that has waited for it to one that waits. Whoever comes last to
 * a barrier has waited there before, too, but wakes all others at once.
 */
static __always_inline void note_turn(struct thread *t, struct thread *waker, u64 now)
{
	t->by_waiter = has_waited_for(waker, t, t->open);
	t->by_parked = t->open == ACCT_FUTEX && is_in_row(t, waker, now);
	t->many = waker->woke_step == waker->steps_head + 1 &&
		  is_same_object(t->open, waker->woke_object, t->object);
	lock_turn_ends(t, waker, now);
	waker->woke_object = t->object;
	waker->woke_step = waker->steps_head + 1;	/* 0: none yet */
}

#define SIGNAL_GROUP_EXIT	4

/* Its process is to end, and so the thread is woken: nobody gave up what it waits for. */
static __always_inline bool is_killed(struct thread *t, struct task_struct *p)
{
	return t->waker_context == CTX_TASK && p->signal->flags & SIGNAL_GROUP_EXIT &&
	       !(p->flags & PF_EXITING) && !is_leaf(t->open);
}

static __always_inline void cut_wait(struct thread *t, u64 now)
{
	t->cut = 1;
	t->waker_context = CTX_HARDIRQ;
	__builtin_memset(&t->waker, 0, sizeof(t->waker));
	nobody_ends(t, now);
}

/*
 * `t` has written to a pipe, where `waker` waited last, and waits for another pipe that this one writes to. Both ends
 * do so; the parent asks, the child that it has started for that answers.
 */
static __always_inline bool is_answer_of_child(struct thread *t, struct thread *waker,
					       struct task_struct *child)
{
	return t->open == ACCT_PIPE_READ && t->sent_pipe &&
	       waker->last_objects[PLACE_PIPE] == t->sent_pipe &&
	       tgid_of(child->real_parent) == t->tgid;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct cpu *cpu = this_cpu(PROG_SCHED_WAKING);
	struct thread *t, *waker;
	struct task_struct *current;
	u32 slot;
	u64 now;

	if (!cpu || stopped || !p)
		return 0;
	slot = known_slot_of(cpu, p);
	if (!slot)
		return 0;
	t = thread_in(slot);
	if (!t)
		return 0;
	/*
	 * The waker is noted even when the thread is still on its way off the
	 * CPU; switch_in() then finds it asleep and never woken.
	 */
	current = bpf_get_current_task_btf();
	t->waker_context = context_of(cpu);
	t->by_waiter = t->many = t->by_parked = 0;
	t->lock_turn_ns = t->news = 0;
	now = bpf_ktime_get_ns();
	t->woken = now;
	t->timer = cpu->firing;
	set_who(&t->waker, current);
	if (t->open < ACCT_BLOCKED)
		return 0;
	/* It may have gone to sleep on another CPU since the clock was read. */
	if ((s64)(now - t->off_since) < 0)
		now = t->off_since;
	if (is_killed(t, p)) {
		cut_wait(t, now);
	} else if (t->waker_context == CTX_TASK) {
		waker = this_thread(cpu);
		if (waker && is_answer_of_child(t, waker, current))
			t->asked = 1;
		if (waker)
			note_first_wait(t, waker, current->flags & PF_EXITING);
		if (waker && t->object)
			note_turn(t, waker, now);
		if (waker)
			note_news(t, waker, now);
	}
	note_idle(cpu, t, now);
	note_timed_poll(cpu, t, now);
	completion_wakes(cpu, t, current);
	if (!t->cut)
		end_wait(cpu, t, now);
	charge(cpu, t, now);
	note_queue(t, p);
	t->open = ACCT_RUNNABLE_WAKEUP;
	t->wake_ns = now;
	return 0;
}
