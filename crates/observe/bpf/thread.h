/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What is remembered of each watched thread, and how a task's is found.
 */
#ifndef WHYLAG_THREAD_H
#define WHYLAG_THREAD_H

#include "kernel.h"
#include "wire.h"

#define CACHE_LINE	64	/* bytes */

/* Whether a thread that slept had nothing to do. */
enum idle {
	IDLE_NOT,		/* it had, or that is not known */
	IDLE_UNTIL_REQUEST,	/* a request came */
	IDLE_FOR_NOW,		/* in poll, until a timer or an interrupt: it depends on what came of that */
};

/* An absence from the CPU: asleep from `from` to `wake`, then ready until `on`. */
struct step {
	u64 from, wake, on;
	u16 shares[END_MAX];	/* of 65,536, of the sleep, by what was at its end */
	u8 throttled;		/* it was not asleep */
	u8 idle;		/* enum idle, of the sleep */
	u32 end_tid;		/* who was at the end of most of the sleep */
	u32 only;		/* what was at the end of all of it, plus 1; 0: see `shares` */
};
#define STEPS	16		/* a power of two */

/*
 * The absences before those, as one: a sleep from the first to the last of them, the time on a CPU
 * between them included. Its shares are worked out when they are asked for.
 */
struct past {
	struct step all;
	u64 longest_ns;		/* the longest piece, whose end is all.end_tid's */
	u64 ends[END_MAX];	/* ns from all.from to all.wake */
};

#define SOFTIRQS	10	/* NR_SOFTIRQS, include/linux/interrupt.h */
#define SERVED_HISTS	(SOFTIRQS + VEC_IRQ_WORK - VEC_LOCAL_TIMER + 1)

/* Kinds of waits of which the last object is remembered. */
enum place { PLACE_FUTEX, PLACE_PIPE, PLACE_FILE_LOCK, PLACE_SEMAPHORES, PLACE_OTHER, PLACES };

/* An interpreter's lock alone has two words, beside those that its programs wait for. */
#define PRIOR_WORDS	3

/*
 * What each call touches comes first, then what each switch does, in as few cache lines as can be: the data
 * of a busy server push them out of the cache before the next one. Up to `accounts` an empty line begins a
 * cache line.
 */
struct thread {
	u64 since;
	u32 open;		/* account that is open since `since` */
	u32 base;		/* what it does on a CPU when not interrupted */
	u64 call_start;		/* 0: it began before the recording */
	u16 call;		/* current system call or NO_CALL */
	u16 try_error;		/* of a call that was refused, 0: none; more of it below */
	u8 changed;		/* since the last dump */
	u8 call_at;		/* where in `calls` the current call is */
	u8 got;			/* a wait for an object has ended, and it has done nothing but run since */
	u8 turn_idle;		/* it waits, or has waited, for work with that object in hand */
	u32 tid, tgid;		/* as they were at first_ns */
	u64 in_call_of;		/* the accounts of which in_call has something, a bit each */
	u64 turn_since;		/* its last poll, select or epoll returned, 0: none did */
	u64 held_since;		/* calls that only wait, nothing else since */

	u64 binding;		/* a first call goes on: its stack, or 0 */
	u64 longest;		/* of the sleeps of the current call */
	u64 lock, spin_lock;
	u32 fault;		/* a page fault was entered, end unknown */
	u8 dirty_pause;
	u8 mm_write;		/* of the mmap_lock that it is taking: see mm_waited */
	u8 mm_slept;		/* that wait is known by its sleep alone */
	u8 mm_snapshot;		/* it has storage in hold_snapshots */
	u32 pending;		/* `sleep` waits for its user stack */
	u32 sent_to;		/* the last send or write, and nothing was read there since: see has_sent() */
	u32 fresh;		/* born under watch; it has handed nothing to anybody */
	u16 off_hist, run_hist, turn_hist;	/* slots, 0: not looked up yet */
	u16 held_call;
	u32 held_calls;

	/* off the CPU */
	u64 off_since;
	u64 slept_from;		/* the same, but for a wait whose first part was for work */
	u64 wake_ns;
	u64 woken;		/* when, since it was last chosen; 0: not */
	u32 off_account;
	u16 waker_context;
	u8 by_waiter;
	u8 lock_like;
	u8 cut;			/* its process ended, and so the wait did */
	u8 idle;		/* enum idle, of its last sleep */
	u8 turn_for_request;	/* a request ended its last wait for something to do */
	u8 idle_turn;		/* the turn of lock_turn_ns was idle */
	u8 poll_timed;		/* its last sleep in poll is in timed_ns */
	u8 many;		/* its waker had just woken another from the same object */
	u8 by_parked;		/* its waker has a turn itself: see take_turn() */
	u8 asked;		/* the wait is for an answer to what it had sent */
	u32 owner;		/* of a lock that it waits for, as the lock says, 0: it does not */
	u32 calls_open;		/* calls that it has sent and no answer was read to */
	u64 steps_head;

	u64 object;
	struct who waker;
	u64 end_ns;		/* the largest piece of the last wait, */
	u32 end_tid, end;	/* who was at its end, and what that one did */
	u32 ends_of;		/* the pieces of it that `ends` has, a bit each */
	u32 first_waker;	/* who ended a wait for work, the first that it ever did */
	u64 work_at;		/* its last wait for what to do was at this object, or at WORK_ANYWHERE; 0: none yet */

	struct timer timer;	/* that woke it */
	u32 woken_by, woken_by_tgid;	/* of its last sleep, 0: no thread */
	u64 woken_at;
	u64 sleeps, preemptions;

	u64 object_step;	/* steps_head after the last wait that had an object */
	u64 last_objects[PLACES];	/* of the last wait of each kind that had one */
	u64 lock_turn_object;	/* for which it waited last, and has not handed it on since, */
	u64 lock_turn_since;	/* when that wait ended */

	u64 lock_turn_ns;	/* of the turn whose end woke it, if it waited all along */
	u64 prior_words[PRIOR_WORDS];	/* the futex words before the last, the latest first */
	u64 park_word;		/* in which a thread has woken it, 0: not since it waited for work */
	u64 turns_since;	/* when the row of such turns began that its last wait was ended by */
	u64 woke_object;	/* of the last wait that it ended itself, */
	u64 woke_step;		/* when it had been off the CPU so often */

	struct wait_sum waits;	/* not yet in wait_sums */

	struct wait_key waits_of;
	/* the request that it read last, until it is answered: see news.h */
	u64 asked_at, asked_read;	/* when it arrived, 0: there is none; when it was read */
	u64 fellow_ns;		/* since then, asleep until a thread of its process let it go on */
	u64 news;		/* of whoever ended its last sleep: when the request arrived that made it do so */

	u64 ends[END_MAX];	/* of the last wait, by what was at the end */
	u64 queue, queue_throttled;	/* that it was in when it was last ready: see throttle.h */

	struct step steps[STEPS];

	struct past past;
	u64 told_ns;		/* asleep since it last read, until a thread of its process told it something, */

	u64 accounts[ACCT_MAX];
	struct call_sum calls[CALL_SLOTS];
	u64 in_call[ACCT_MAX];
	/* failed calls of one kind that are not yet in call_errors */
	struct call_error_key errors_of;
	u64 errors, errors_kept;
	struct hold holder;	/* of the lock last waited for */

	u64 serving;		/* connection of the request it works on, as in request_record */
	u64 replied;		/* it read the answer to a call last, 0: never */
	u64 timed_ns;		/* asleep in poll until a time was over that it, or its process, had set */
	u16 served_hists[SERVED_HISTS];	/* slots, of softirqs and interrupts without a device */
	u16 try_call;		/* the call that was refused */
	u16 try_account;	/* of what it has slept since */
	u16 try_port;		/* to which it is to connect, 0: to none */
	u8 try_pipe;		/* it asks for room in a pipe */
	u8 try_again;		/* it is in that call again */
	u32 try_others;		/* calls since */
	u32 try_count;		/* sleeps that are not in retry_sums yet, */
	u64 try_ns, try_max_ns;	/* how long, and the longest */
	u64 try_object;
	u64 try_data;		/* a number of what it wants to write to a pipe, 0: not known */
	u64 try_slept;		/* since it was refused last, */
	u64 try_row_ns;		/* and since it was first, up to the last try */
	u64 migrations;

	/* locks */
	u64 lock_start, lock_class, lock_stack;
	u64 spin_start;
	u32 lock_account;
	u32 spin_base;
	u64 mm_waited;		/* mm whose mmap_lock it is taking */
	u64 mm_wait_start;
	u64 fault_address, fault_ip;
	u64 linker;		/* where the dynamic linker is, 0: none */
	u32 starting;		/* after exec, until it has run the program */
	u32 bindings;		/* first calls so far */
	u64 binding_start;
	u64 binding_min_flt, binding_maj_flt;
	u64 binding_until;	/* so far the thread was surely in the linker */
	u64 binding_had[ACCT_BLOCKED];	/* what in_call had then of the accounts that are no sleep */

	/* of its user stack: the last, the start of that call, and the stack without it */
	u64 copied, copied_call, copied_walk;
	u64 reclaim_start, compaction_start;

	u64 python;		/* its state in a Python interpreter, when last found */
	u64 python_missed;	/* when it was last looked for in vain */

	u64 socket_walk;	/* the first over its sockets, 0: none yet */
	u64 first_ns;
	u64 min_flt, maj_flt;	/* the kernel's counts at first_ns */

	u64 sleep_throttled;	/* ns of `sleep` in which it was ready, and a quota kept it */

	struct sleep sleep;	/* the last long one */
	u64 sleep_arguments[6];	/* of its call, if there is one: without recorded calls it may have left that since */
	u16 sleep_kind;
	u8 walks;		/* so many sleeps from now on may have their stacks walked before them */
	u8 walks_epoch;		/* in which it was last given some, counted from 1 */
	u32 sleep_cpu;
	struct sleep call_sleep;
	u64 call_seen;		/* when its call began, in a window of sampled calls; 0: before */
	u64 sleep_ip;		/* of user mode, in that sleep; 0: its program is gone */
	u64 walked;		/* its user stack before its last sleep, 0: not walked */
	u64 sent_pipe;		/* if it waits for a pipe: the other one that it has written to last, or 0 */
	u64 waits_kept;		/* when `waits` was last added to wait_sums */
	u64 queue_now;
	u64 told_object;	/* which is at that object: see told_ns */
};
_Static_assert(sizeof(struct thread) % CACHE_LINE == 0, "each thread begins a cache line");
_Static_assert(__builtin_offsetof(struct thread, steps) % CACHE_LINE == 0, "and so does each step");

/*
 * The threads are in arrays, because looking one up there costs a tenth of
 * a task storage look-up, and a CPU remembers the slot of the thread that it
 * runs. Storage only gives the slot of a task that comes or is woken. Slots
 * are given back when threads die. The loader adds a block when most slots are
 * in use, and says how many there can be: all of them would take 100 MB.
 */
struct thread_block {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BLOCK_THREADS);
	/* The loader does not map them, but then they begin at a page, and so threads at a cache line. */
	__uint(map_flags, BPF_F_MMAPABLE);
	/* No types: to kernels before 6.2 a block that the loader makes is another kind of map with them. */
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct thread));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct thread_block);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} thread_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} free_slots SEC(".maps");

/* The block of a slot, or NULL if it is not there yet. */
static __always_inline void *block_of(u32 slot)
{
	u32 block = slot / BLOCK_THREADS;

	return bpf_map_lookup_elem(&threads, &block);
}

static __always_inline struct thread *in_block(void *block, u32 slot)
{
	slot %= BLOCK_THREADS;
	return block ? bpf_map_lookup_elem(block, &slot) : NULL;
}

/* Slot 0 is no thread: the first block is never there. To test for 0 as well doubles what is verified. */
static __always_inline struct thread *thread_in(u32 slot)
{
	return in_block(block_of(slot), slot);
}

/* All zero. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread);
} blank_threads SEC(".maps");

static __always_inline struct thread *blank_thread(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&blank_threads, &zero);
}

static __always_inline u32 stored_slot_of(struct task_struct *task)
{
	u32 *slot = bpf_task_storage_get(&thread_slots, task, 0, 0);

	return slot ? *slot : 0;
}

/*
 * The same where it is often asked for: most tasks of a host are not watched, and have no storage at all,
 * which one load shows. That load is dear for the verifier: see unproven().
 */
static __always_inline u32 slot_of(struct task_struct *task)
{
	if (!task || (bpf_core_field_exists(task->bpf_storage) && !task->bpf_storage))
		return 0;
	return stored_slot_of(task);
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return thread_in(slot_of(task));
}

/* What the current call, or first call, has had of an account. */
static __always_inline u64 had_in_call(struct thread *t, u32 account)
{
	return t->in_call_of >> (account & 63) & 1 ? t->in_call[account] : 0;
}

/* What the last wait has had of an end. */
static __always_inline u64 end_of_wait(struct thread *t, u32 end)
{
	return t->ends_of >> (end & 31) & 1 ? t->ends[end] : 0;
}

static __always_inline void put_end(struct thread *t, u32 end, u64 ns)
{
	t->ends[end] = end_of_wait(t, end) + ns;
	t->ends_of |= 1U << (end & 31);
}

static __always_inline void forget_ends(struct thread *t)
{
	t->ends_of = 0;
	t->end_ns = 0;
	t->end_tid = t->end = 0;
}

/*
 * Each call has two slots that it may be in: with one, a server that goes round between epoll_wait (232)
 * and sendfile (40) or lseek (8) would change it twice in each turn.
 */
static __always_inline u32 first_slot(u32 nr)
{
	return nr & (CALL_SLOTS - 1);
}

static __always_inline u32 second_slot(u32 nr)
{
	return (nr ^ ((nr >> 4) + 5)) & (CALL_SLOTS - 1);
}

static __always_inline struct call_sum *call_slot(struct thread *t)
{
	return &t->calls[t->call_at & (CALL_SLOTS - 1)];
}

#endif
