/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Sums of waits that have ended, by object and by who ended them.
 */
#ifndef WHYLAG_WAITS_H
#define WHYLAG_WAITS_H

#include "state.h"
#include "sleeps.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} wait_sums SEC(".maps");

/*
 * Several threads may wait for one object of this kind. The others are too many (a socket for each
 * connection).
 */
static __always_inline bool is_shared(u32 account)
{
	const u64 others = 1ULL << ACCT_POLL | 1ULL << ACCT_TIMER |
			   1ULL << ACCT_CHILD | 1ULL << ACCT_SOCKET_ACCEPT |
			   1ULL << ACCT_SOCKET_RECEIVE;

	return !(others >> (account & 63) & 1);
}

/* Adds a wait that had one end: most do. The compiler is to test the register that it indexes with. */
static __always_inline void only_end(u64 *ends, u32 end, u64 ns)
{
	barrier_var(end);
	if (end < END_MAX)
		ends[end] += ns;
}

/*
 * Boyer and Moore's majority vote, by time: whoever has more than half of it is left, and of two sums
 * together as well. Where CPUs vote at once a vote may be lost, which a majority survives.
 */
static __always_inline void vote(struct wait_sum *sum, u64 whose, u64 ns)
{
	u64 before = sum->usual_ns;

	if (!ns)
		return;
	if (sum->usual == whose) {
		sum->usual_ns = before + ns;
	} else if (before >= ns) {
		sum->usual_ns = before - ns;
	} else {
		sum->usual = whose;
		sum->usual_ns = ns - before;
	}
}

/* How often, at most, a thread adds its waits to the map. */
#define WAITS_KEPT_NS	10000000

static __always_inline void add_to(struct wait_sum *all, struct wait_sum *more)
{
	u32 k;

	__sync_fetch_and_add(&all->count, more->count);
	__sync_fetch_and_add(&all->ns, more->ns);
	if (more->by_waiter)
		__sync_fetch_and_add(&all->by_waiter, more->by_waiter);
	if (more->many)
		__sync_fetch_and_add(&all->many, more->many);
	if (more->again)
		__sync_fetch_and_add(&all->again, more->again);
	if (more->by_parked)
		__sync_fetch_and_add(&all->by_parked, more->by_parked);
	if (all->waiter_tid != more->waiter_tid)
		all->waiter_tid = 0;
	if (more->open)
		__sync_fetch_and_add(&all->open, more->open);
	if (more->turns) {
		__sync_fetch_and_add(&all->turns, more->turns);
		__sync_fetch_and_add(&all->turn_ns, more->turn_ns);
		__sync_fetch_and_add(&all->idle_turn_ns, more->idle_turn_ns);
	}
	if (more->began_tid && !all->began_tid) {
		all->began_tid = more->began_tid;
		all->began_by = more->began_by;
	}
	if (more->lock_like)
		__sync_fetch_and_add(&all->lock_like, more->lock_like);
	for (k = 0; k < END_MAX; k++) {
		if (more->ends[k])
			__sync_fetch_and_add(&all->ends[k], more->ends[k]);
	}
	if (more->max_ns > all->max_ns) {
		all->max_ns = more->max_ns;
		all->end_tid = more->end_tid;
		all->end = more->end;
	}
	vote(all, more->usual, more->usual_ns);
	if (more->waker_comm[0]) {
		all->waker_tid = more->waker_tid;
		__builtin_memcpy(all->waker_comm, more->waker_comm, 16);
	}
}

/* The sum of `key`, new if there was none: the first waiter is `tid` then. */
static __always_inline struct wait_sum *wait_sum_of(struct wait_key *key, u32 tid)
{
	struct wait_sum *sum = bpf_map_lookup_elem(&wait_sums, key);
	struct thread *blank;
	long error;

	if (sum)
		return sum;
	/* A sum on the stack would be half of what that may be. */
	blank = blank_thread();
	if (!blank)
		return NULL;
	error = bpf_map_update_elem(&wait_sums, key, &blank->waits, BPF_NOEXIST);
	if (error == -7 /* E2BIG */)
		lost(LOSS_WAIT);
	sum = bpf_map_lookup_elem(&wait_sums, key);
	if (sum && !error)
		sum->waiter_tid = tid;
	return sum;
}

/* Adds what a thread has waited, since it did so last, to the sums of its process. */
__noinline int keep_waits(struct thread *t)
{
	struct wait_sum *sum;
	struct wait_key key;

	if (!t || !t->waits.count)
		return 0;
	/* Older kernels take no key from memory that was handed to a global function. */
	key = t->waits_of;
	t->waits.waiter_tid = t->tid;
	sum = wait_sum_of(&key, t->tid);
	if (sum)
		add_to(sum, &t->waits);
	__builtin_memset(&t->waits, 0, sizeof(t->waits));
	return 0;
}

static __always_inline enum place place_of(u32 account)
{
	switch (account) {
	case ACCT_FUTEX:
		return PLACE_FUTEX;
	case ACCT_PIPE_READ:
		return PLACE_PIPE;
	case ACCT_FILE_LOCK:
		return PLACE_FILE_LOCK;
	case ACCT_OTHER:
		return PLACE_SEMAPHORES;
	}
	return PLACE_OTHER;
}

/*
 * A condition variable of glibc has two futex words, side by side, for waiters in turn; pipes that
 * are made together have numbers side by side and are not the same.
 */
static __always_inline bool is_same_object(u32 account, u64 one, u64 other)
{
	return account == ACCT_FUTEX ? one >> 3 == other >> 3 : one == other;
}

/*
 * It has waited for the object of `t` before, in between for nothing else but some other words: a
 * mutex beside it, the lock of an interpreter.
 */
static __always_inline bool has_waited_for(struct thread *waiter, struct thread *t, u32 account)
{
	u32 k;

	if (is_same_object(account, waiter->last_objects[place_of(account)], t->object))
		return true;
	for (k = 0; account == ACCT_FUTEX && k < PRIOR_WORDS; k++) {
		if (is_same_object(account, waiter->prior_words[k], t->object))
			return true;
	}
	return false;
}

/* So little of a CPU between two waits for one object is no work, but a look at a condition. */
#define LOOK_NS	50000

/* So often it may give way meanwhile: who spins before it sleeps calls sched_yield. */
#define LOOKS	8

/*
 * Woken, it has looked whether it is its turn, and waits on; on the way to the condition it may have
 * slept for the mutex beside it, or been preempted. Who sleeps by a timer goes on with something else.
 */
static __always_inline bool waits_again(struct thread *t)
{
	u64 between = t->steps_head - t->object_step, until = t->off_since, looked = 0;
	u32 i;

	if (!has_waited_for(t, t, t->off_account))
		return false;
	for (i = 0; i < LOOKS; i++) {
		struct step *step = &t->steps[(t->steps_head - 1 - i) & (STEPS - 1)];

		looked += until - step->on;
		if (looked >= LOOK_NS)
			return false;
		if (i == between)
			return true;
		if (step->wake - step->from >= LOOK_NS)
			return false;
		until = step->from;
	}
	return false;
}

/* What brings the next thing to do. */
#define WAITS_FOR_WORK	(1ULL << ACCT_POLL | 1ULL << ACCT_SOCKET_ACCEPT |	\
			 1ULL << ACCT_SOCKET_RECEIVE | 1ULL << ACCT_PIPE_READ)

/*
 * Runtimes let each thread sleep on a word of its own, whatever it waits for. Of a lock, who is
 * woken has the turn, and wakes the next one when it has done. Its turn is over when it waits for
 * work, or in its word for a time to come; an answer to what it has asked is no work.
 */
static __always_inline void take_turn(struct thread *t)
{
	const u64 work = WAITS_FOR_WORK | 1ULL << ACCT_CHILD;

	if (t->off_account == ACCT_FUTEX && t->waker_context == CTX_TASK)
		t->park_word = t->object >> 3;
	else if ((work >> (t->off_account & 63) & 1 && !t->asked) ||
		 (t->off_account == ACCT_FUTEX && t->park_word == t->object >> 3))
		t->park_word = 0;
}

/*
 * Where it was told what to do last: a poll of a few descriptors may be for the output of a child or
 * for another answer.
 */
static __always_inline void note_work(struct thread *t)
{
	const u64 calls = 1ULL << ACCT_SOCKET_ACCEPT | 1ULL << ACCT_SOCKET_RECEIVE | 1ULL << ACCT_POLL;

	if (t->asked || !(calls >> (t->off_account & 63) & 1))
		return;
	if (t->object || !(IS_POLL(t->call) || IS_SELECT(t->call)))
		t->work_at = t->object ? t->object : WORK_ANYWHERE;
}

/* Remembers what the wait that has ended was for. */
static __always_inline void note_object(struct thread *t)
{
	u32 place = place_of(t->off_account), k;

	t->got = 0;
	if (!t->object)
		return;
	if (place == PLACE_FUTEX && !is_same_object(ACCT_FUTEX, t->last_objects[place], t->object)) {
		for (k = PRIOR_WORDS - 1; k > 0; k--)
			t->prior_words[k] = t->prior_words[k - 1];
		t->prior_words[0] = t->last_objects[place];
	}
	t->last_objects[place & 7] = t->object;
	t->object_step = t->steps_head;
	if (t->turn_idle && WAITS_FOR_WORK >> (t->off_account & 63) & 1)
		return;		/* and still has what it got before */
	t->turn_idle = 0;
	t->lock_turn_object = t->object;
	t->lock_turn_since = t->wake_ns;
	t->got = place != PLACE_OTHER;
}

/*
 * It goes to sleep. Who waits for work as soon as it has a lock (a connection to accept, the next
 * message of a queue) has nothing else in hand: those behind it wait for work, too, one after the
 * other. Who has sent something first may have all that others need.
 */
static __always_inline void note_idle_turn(struct thread *t)
{
	t->turn_idle = !t->asked && !calls_off && WAITS_FOR_WORK >> (t->open & 63) & 1;
	t->got = 0;
}

/* Most waits have none of these, and are not to fetch their place. */
static __always_inline void add_how_it_ended(struct wait_sum *sum, struct thread *t)
{
	if (t->by_waiter)
		sum->by_waiter++;
	if (t->many)
		sum->many++;
	if (t->by_parked)
		sum->by_parked++;
	if (waits_again(t))
		sum->again++;
	if (t->lock_like)
		sum->lock_like++;
	if (!t->lock_turn_ns)
		return;
	sum->turns++;
	sum->turn_ns += t->lock_turn_ns;
	sum->idle_turn_ns += t->idle_turn ? t->lock_turn_ns : 0;
}

/* In registers: as bytes they would go through the stack, in pieces that the CPU cannot forward. */
static __always_inline bool is_same_key(struct wait_key *one, struct wait_key *other)
{
	return !((one->tgid ^ other->tgid) | (one->account ^ other->account) |
		 (one->object ^ other->object) | (one->waker_tgid ^ other->waker_tgid) |
		 (one->asked ^ other->asked));
}

/* Adds a finished sleep to the sums by object and waker. */
static __always_inline void add_wait(struct thread *t, u64 now)
{
	struct wait_key key = {};
	struct wait_sum *sum;
	u64 ns;
	u32 k;

	key.tgid = t->tgid;
	key.account = t->off_account;
	key.object = is_shared(t->off_account) ? t->object : 0;
	key.waker_tgid = t->waker_context == CTX_TASK ? t->waker.tgid : 0;
	key.asked = t->asked;
	ns = t->wake_ns - t->off_since;
	sum = &t->waits;
	if (!is_same_key(&key, &t->waits_of) || now - t->waits_kept >= WAITS_KEPT_NS) {
		keep_waits(t);
		t->waits_of = key;
		t->waits_kept = now;
	}
	sum->count++;
	sum->ns += ns;
	if (t->object)
		add_how_it_ended(sum, t);
	if (t->cut)
		sum->open++;
	if (t->first_waker) {
		sum->began_tid = t->tid;
		sum->began_by = t->first_waker;
		t->first_waker = 0;
	}
	if (t->end_ns == ns)
		only_end(sum->ends, t->end, ns);
	else
		for (k = 0; k < END_MAX; k++)
			sum->ends[k] += end_of_wait(t, k);
	if (ns > sum->max_ns) {
		sum->max_ns = ns;
		sum->end_tid = t->end_tid;
		sum->end = t->end;
	}
	vote(sum, (u64)t->end << 32 | t->end_tid, t->end_ns);
	if (key.waker_tgid && sum->waker_tid != t->waker.tid) {
		sum->waker_tid = t->waker.tid;
		__builtin_memcpy(sum->waker_comm, t->waker.comm, 16);
	}
}

/* The wait of `t` has not been ended by anybody up to now. */
static __always_inline void nobody_ends(struct thread *t, u64 now)
{
	put_end(t, END_UNKNOWN, now - t->off_since);
	t->end_tid = t->lock_like ? t->owner : 0;
	t->end = END_UNKNOWN;
}

/* A wait that goes on when recording stops has not been ended by anybody, and counts, too. */
static __always_inline void keep_open_wait(struct thread *t, u64 now)
{
	if (t->open < ACCT_BLOCKED || now <= t->off_since)
		return;
	t->off_account = t->open;
	t->wake_ns = now;
	t->waker_context = CTX_HARDIRQ;
	t->by_waiter = t->many = t->by_parked = 0;
	t->lock_turn_ns = 0;
	forget_ends(t);
	nobody_ends(t, now);
	add_wait(t, now);
	t->waits.open++;
	t->off_since = now;
}

#endif
