/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The state of watched threads and the moves that every program shares:
 * look a thread up, charge its time, count into a histogram.
 *
 * The one rule that makes the accounts sum to the wall time: at any moment a
 * watched thread has exactly one open account (thread.open) that has been
 * open since thread.since, and time only moves by charge().
 */
#ifndef WHYLAG_STATE_H
#define WHYLAG_STATE_H

#include "kernel.h"
#include "namespace.h"
#include "wire.h"

/* ---- set by the loader before the programs are loaded ---- */

const volatile u32 target_kind;
const volatile u32 target_pid;		/* process, or thread */
const volatile u32 target_tgid;		/* that process, or that thread's */
const volatile bool follow;
const volatile u32 recorder_tgid;	/* never watched */
const volatile bool every_first_call;	/* is kept, however short */
const volatile bool late_only;
const volatile bool no_stacks;	/* they take longer than what is measured */
const volatile u32 jiffy_ns;
const volatile u32 sample_period_ns;
const volatile u32 hist_slots;		/* slots of hists, both halves */
const volatile u32 thread_slots_max;	/* slots of threads */
const volatile u8 call_kinds[CALLS_MAX];	/* enum call_kind */
/* Code of the kernel's lock and scheduler functions, to step over. */
const volatile u64 sched_text[2], lock_text[2];
const volatile u64 handle_mm_fault_text[2];

/* ---- changed by the loader while they run ---- */

u64 threshold_ns;	/* intervals this long are kept whole */
u32 stopped;		/* nothing is charged, not yet or not any more */
u32 epoch;		/* histograms count into half epoch & 1 */
u32 calls_off;		/* there are no system call probes, or they were shed */
u32 locks_off;		/* the same of contention_begin */
u32 dump_all;		/* the iterator gives unchanged threads too */
u32 taken;		/* threads that walks have begun to watch */
u32 roles_known;	/* the sockets that listen have been found */
u64 idle_ns;		/* answers to which nothing was added so long are complete */

/* ---- changed by the programs ---- */

u32 hist_next = 1;	/* next histogram slot that was never used; 0 means none */
u32 slot_next = 1;	/* next thread slot that was never used */
u32 watched;		/* threads that have a slot */

/* An absence from the CPU: asleep from `from` to `wake`, then ready until `on`. */
struct step {
	u64 from, wake, on;
	u16 shares[END_MAX];	/* of 65,536, of the sleep, by what was at its end */
	u16 throttled;		/* it was not asleep */
	u32 end_tid;		/* who was at the end of most of the sleep */
	u32 pad;
};
#define STEPS	16		/* a power of two */

#define SOFTIRQS	10	/* NR_SOFTIRQS, include/linux/interrupt.h */
#define SERVED_HISTS	(SOFTIRQS + VEC_IRQ_WORK - VEC_LOCAL_TIMER + 1)

/* Kinds of waits of which the last object is remembered. */
enum place { PLACE_FUTEX, PLACE_PIPE, PLACE_FILE_LOCK, PLACE_SEMAPHORES, PLACE_OTHER, PLACES };

struct thread {
	u64 since;
	u32 open;		/* account that is open since `since` */
	u32 base;		/* what it does on a CPU when not interrupted */
	u64 first_ns;
	u32 tid, tgid;		/* as they were at first_ns */

	u16 call;		/* current system call or NO_CALL */
	u16 off_hist, run_hist, turn_hist;	/* slots, 0: not looked up yet */
	u16 served_hists[SERVED_HISTS];	/* the same, of softirqs and interrupts without a device */
	u8 changed;		/* since the last dump */
	u8 call_dirty;		/* in_call has something */
	u64 call_start;		/* 0: it began before the recording */
	u64 serving;		/* connection of the request it works on, as in request_record */
	u64 replied;		/* it read the answer to a call last, 0: never */
	u64 turn_since;		/* its last poll, select or epoll returned, 0: none did */
	u64 held_since;		/* calls that only wait, nothing else since */
	u16 held_call;
	u32 held_calls;

	/* a call that was refused, 0: none */
	u16 try_error;
	u16 try_call;
	u32 try_others;		/* calls since */
	u64 try_object;
	u32 try_pipe;		/* it is a pipe */
	u64 try_slept;		/* since */

	/* off the CPU */
	u64 off_since;
	u64 slept_from;	/* the same, but for a wait whose first part was for work */
	u64 wake_ns;
	u32 off_account;
	u16 waker_context;
	u8 by_waiter;
	u8 lock_like;
	u8 cut;			/* its process ended, and so the wait did */
	u32 owner;		/* of a lock that it waits for, as the lock says, 0: it does not */
	u64 woken;		/* when, since it was last chosen; 0: not */
	struct who waker;
	u32 woken_by, woken_by_tgid;	/* of its last sleep, 0: no thread */
	u64 woken_at;
	struct timer timer;	/* that woke it */
	u64 object;
	u64 last_objects[PLACES];	/* of the last wait of each kind that had one */
	u64 prior_word;		/* the futex word before that */
	u64 object_step;	/* steps_head after the last wait that had an object */
	u64 park_word;		/* in which a thread has woken it, 0: not since it waited for work */
	u32 many;		/* its waker had just woken another from the same object */
	u32 by_parked;		/* its waker has a turn itself: see take_turn() */
	u64 lock_turn_object;	/* for which it waited last, and has not handed it on since, */
	u64 lock_turn_since;	/* when that wait ended */
	u64 lock_turn_ns;	/* of the turn whose end woke it, if it waited all along */
	u32 fresh;		/* born under watch; it has handed nothing to anybody */
	u32 first_waker;	/* who then ended a wait for work */
	u64 woke_object;	/* of the last wait that it ended itself, */
	u64 woke_step;		/* when it had been off the CPU so often */

	/* who waits for whom */
	u64 ends[END_MAX];	/* of the last wait, by what was at the end */
	u64 end_ns;		/* the largest piece of it, */
	u32 end_tid, end;	/* who was at its end, and what that one did */
	u64 steps_head;
	struct step steps[STEPS];
	u32 sent_fd;		/* of the last send or write, plus 1; 0: none since */
	u32 asked;		/* the wait is for an answer to it */
	u64 waits_kept;		/* when `waits` was last added to wait_sums */
	struct wait_key waits_of;
	struct wait_sum waits;	/* not yet in wait_sums */

	/* locks */
	u64 lock, lock_start, lock_class, lock_stack;
	u64 spin_lock, spin_start;
	u32 lock_account;
	u32 spin_base;
	u64 mm_waited;		/* mm whose mmap_lock it is taking */
	u64 mm_wait_start;
	u32 mm_write;
	u8 mm_slept;		/* that wait is known by its sleep alone */
	u8 mm_snapshot;		/* it has storage in hold_snapshots */
	u32 fault;		/* a page fault was entered, end unknown */
	u64 fault_address, fault_ip;
	u64 linker;		/* where the dynamic linker is, 0: none */
	u32 starting;		/* after exec, until it has run the program */
	u32 bindings;		/* first calls so far */
	u64 binding;		/* a first call goes on: its stack, or 0 */
	u64 binding_start;
	u64 binding_min_flt, binding_maj_flt;
	struct hold holder;	/* of the lock last waited for */

	/* of its user stack: the last, the start of that call, and the stack without it */
	u64 copied, copied_call, copied_walk;
	u32 dirty_pause;
	u32 pending;		/* `sleep` waits for its user stack */
	u64 reclaim_start, compaction_start;

	u64 socket_walk;	/* the first over its sockets, 0: none yet */
	u64 min_flt, maj_flt;	/* the kernel's counts at first_ns */
	u64 sleeps, preemptions, migrations;

	struct sleep sleep;	/* the last long one */
	u32 sleep_kind;
	u32 sleep_cpu;
	u64 longest;		/* of the current call */
	struct sleep call_sleep;

	u64 accounts[ACCT_MAX];
	u64 in_call[ACCT_MAX];
	struct call_sum calls[CALL_SLOTS];
};

/*
 * The threads are in an array, because looking one up there costs a tenth of
 * a task storage look-up, and a CPU remembers the slot of the thread that it
 * runs. Storage only gives the slot of a task that comes or is woken. Slots
 * are given back when threads die; the loader sets how many there are.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread);
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

/* The last piece of time that was noted of a process. */
#define NOTED	16		/* a power of two */
struct noted {
	u64 piece;
	u32 tgid;
	u32 pad;
};

/* One CPU's own state; programs on a CPU do not race for it. */
struct cpu {
	u64 task;		/* running here, as the last switch said */
	u32 slot;		/* of the watched thread running here, or 0 */
	u32 busy;		/* enter() without leave() */
	u64 runs[PROG_MAX];
	u64 losses[LOSS_MAX];
	u32 in_hardirq, in_softirq;
	u64 irq_start, irq_end, softirq_start;
	u32 softirq_inline;	/* the running task's own call raised it */
	struct timer firing;	/* its function runs now */
	u64 io_issued, io_done;	/* the last block request that ended here */
	u64 steal;
	u64 ran_head;
	struct ran ran[RAN_SEEN];	/* what ran here last, a ring */
	u64 served_head;
	struct served served[SERVED_SEEN];	/* the last interrupts, a ring */
	struct noted noted[NOTED];
	struct stack_record stack;
	u32 stack_met;		/* how often it was met */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct call_key);
	__type(value, u64);
} evicted_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} wait_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct runner_key);
	__type(value, struct runner_sum);
} runner_sums SEC(".maps");

/* What found no room there: whoever waited, and whoever ran. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct runner_sum);
} other_runners SEC(".maps");

/* Outliers in one ring, everything that must not drown in the other. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} outliers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} rare SEC(".maps");

#define RING_WAKE_BYTES	(1 << 20)

/* Slot 0 is no thread. */
static __always_inline struct thread *thread_in(u32 slot)
{
	return slot ? bpf_map_lookup_elem(&threads, &slot) : NULL;
}

static __always_inline u32 slot_of(struct task_struct *task)
{
	u32 *slot = bpf_task_storage_get(&thread_slots, task, 0, 0);

	return slot ? *slot : 0;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return thread_in(slot_of(task));
}

/* The watched thread on this CPU, or NULL. */
static __always_inline struct thread *this_thread(struct cpu *cpu)
{
	return stopped ? NULL : thread_in(cpu->slot);
}

/* The same where no cpu is at hand. */
static __always_inline struct thread *current_thread(void)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	return cpu ? this_thread(cpu) : NULL;
}

static __always_inline struct call_sum *call_slot(struct thread *t)
{
	return &t->calls[t->call & (CALL_SLOTS - 1)];
}

/*
 * Programs that run in a thread's own context change its accounts between
 * enter() and leave(). An interrupt that comes in between leaves them alone:
 * the nanoseconds it takes stay in the account it interrupts, and the sums
 * stay exact.
 */
static __always_inline bool enter(struct cpu *cpu)
{
	volatile u32 *busy = &cpu->busy;

	if (*busy)
		return false;	/* our own locks, contended inside a program */
	*busy = 1;
	barrier();
	return true;
}

/* The lock is one of ours: what is done at it may take it, too. */
static __always_inline bool in_own_program(void)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	return cpu && *(volatile u32 *)&cpu->busy;
}

static __always_inline void leave(struct cpu *cpu)
{
	volatile u32 *busy = &cpu->busy;

	barrier();
	*busy = 0;
}

/*
 * A ring and an LRU map have locks, and where these are contended the programs
 * for locks run within the one that waits, which may have the lock by then.
 * So they are to see that it is one of ours.
 */
static __always_inline u32 hold_own(struct cpu *cpu)
{
	volatile u32 *busy = &cpu->busy;
	u32 was = *busy;

	*busy = 1;
	barrier();
	return was;
}

static __always_inline void release_own(struct cpu *cpu, u32 was)
{
	volatile u32 *busy = &cpu->busy;

	barrier();
	*busy = was;
}

/* Room in a ring, or NULL. */
static __always_inline void *reserve(void *ring, u64 size)
{
	u32 zero = 0, was;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	void *room;

	if (!cpu)
		return NULL;
	was = hold_own(cpu);
	room = bpf_ringbuf_reserve(ring, size, 0);
	release_own(cpu, was);
	return room;
}

/* An interrupt between a clock read and its charge() makes it this late. */
#define CLOCK_SLACK_NS	1000000

/*
 * Puts the time since the last move into the open account. A clock read that
 * is older than the last move moves nothing, so that the sum stays exact.
 */
static __always_inline u64 charge(struct cpu *cpu, struct thread *t, u64 now)
{
	u64 ns = now - t->since;
	u32 open = t->open;

	if ((s64)ns < 0) {
		if ((s64)ns < -CLOCK_SLACK_NS)
			cpu->losses[LOSS_NEGATIVE]++;
		return 0;
	}
	t->since = now;
	t->changed = 1;
	if (open == ACCT_SYSCALL) {
		call_slot(t)->ns += ns;
		return ns;
	}
	if (open >= ACCT_MAX)
		open = ACCT_UNACCOUNTED;
	t->accounts[open] += ns;
	if (t->call != NO_CALL || t->binding) {
		t->in_call[open] += ns;
		t->call_dirty = 1;
	}
	return ns;
}

/* What a thread does on a CPU; unknown in part without system call probes. */
static __always_inline u32 base_account(struct thread *t)
{
	if (calls_off && (t->base == ACCT_USER || t->base == ACCT_SYSCALL))
		return ACCT_RUNNING;
	return t->base;
}

/* The account of a running thread: interrupts come before its own work. */
static __always_inline u32 running_account(struct cpu *cpu, struct thread *t)
{
	if (cpu->in_hardirq)
		return ACCT_HARDIRQ;
	if (cpu->in_softirq)
		return ACCT_SOFTIRQ;
	return base_account(t);
}

/*
 * The kernel does not run every program at every event: not within itself,
 * and some hosts hide tasks of their own. So a thread can come to a CPU
 * unseen; it is met here at its next event, and the time since it came stays
 * in the account it had.
 */
__noinline int meet_current(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t;
	bool first;

	if (!cpu)
		return 0;
	first = !cpu->task;
	cpu->task = (u64)task;
	cpu->slot = slot_of(task);
	t = this_thread(cpu);
	if (!t || !enter(cpu))
		return 0;
	if (!first)
		cpu->losses[LOSS_SWITCH]++;
	charge(cpu, t, bpf_ktime_get_ns());
	t->open = running_account(cpu, t);
	t->woken = 0;
	leave(cpu);
	return 0;
}

static __always_inline struct cpu *this_cpu(u32 program)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (!cpu)
		return NULL;
	cpu->runs[program]++;
	if (cpu->task != (u64)bpf_get_current_task_btf())
		meet_current();
	return cpu;
}

/*
 * A packet over loopback is delivered by a softirq within the call that sends it: then it is the
 * sender that wakes the receiver.
 */
static __always_inline u32 context_of(struct cpu *cpu)
{
	return cpu->in_hardirq ? CTX_HARDIRQ :
	       cpu->in_softirq && !cpu->softirq_inline ? CTX_SOFTIRQ : CTX_TASK;
}

/* floor(log2 v) for v > 0. */
static __always_inline u32 log2_u64(u64 v)
{
	return 63 - __builtin_clzll(v);	/* no branch: each would double what is verified */
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

/* Not static, as hold_class: checked once, and not along every path of a switch. */
__noinline int hist_count(u32 slot, u64 v)
{
	u32 index = slot * 2 + (epoch & 1), bucket;
	struct hist *h;

	if (!slot)
		return 0;
	h = bpf_map_lookup_elem(&hists, &index);
	if (!h)
		return 0;
	bucket = hist_bucket(v);
	if (bucket < HIST_BUCKETS)
		h->buckets[bucket]++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
	if (~v > h->inverse_min)
		h->inverse_min = ~v;
	return 0;
}

static __always_inline void lost(u32 kind)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (cpu && kind < LOSS_MAX)
		cpu->losses[kind]++;
}

static __always_inline u64 *free_hists_at(u32 slot)
{
	return &free_hists[slot / 64 & (HIST_SLOTS_MAX / 64 - 1)];
}

/* Three quarters of the slots have been used, and none of them is free again. */
static __always_inline bool hists_are_scarce(void)
{
	u32 i;

	if (hist_next <= hist_slots / 2 / 4 * 3)
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
	return hist_next > hist_slots / 2 / 4 * 3 ? 0 : __sync_fetch_and_add(&hist_next, 1);
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

/* Wakes the recorder only when a good part of a ring is full. */
static __always_inline u64 ring_flags(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > RING_WAKE_BYTES ?
		BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/*
 * Real-time priority as user space counts: 1 to 99, 100 for a deadline, 0 for
 * an ordinary thread (include/linux/sched/prio.h: prio 98 is 1, 0 is 99, -1 is
 * a deadline, from 100 on it is ordinary).
 */
static __always_inline u8 priority_of(struct task_struct *task)
{
	int prio = task->prio;

	if (prio >= 99)
		return 0;
	return prio < 0 ? 100 : 99 - prio;
}

/*
 * Kept from running: by a signal, a tracer, or the freezer. That of cgroup v2
 * lets a task sleep interruptibly in a trap of its own.
 */
static __always_inline bool is_stopped(struct task_struct *task, u32 state)
{
	if (state & (TASK_STOPPED_BIT | TASK_TRACED_BIT | TASK_FROZEN))
		return true;
	return (state & TASK_INTERRUPTIBLE) && (task->jobctl & JOBCTL_TRAP_FREEZE);
}

static __always_inline void set_who(struct who *who, struct task_struct *task)
{
	who->tid = tid_of(task);
	who->tgid = tgid_of(task);
	name_task(who->comm, task, who->tgid);
}

/*
 * The number of a call in the table of this architecture. 32-bit programs
 * have another one: their calls all get the last number, which is no call's,
 * like the numbers beyond the table.
 */
static __always_inline u64 call_numbered(struct task_struct *task, u64 nr)
{
	return nr >= CALLS_MAX || IS_32_BIT(task) ? CALLS_MAX - 1 : nr;
}

/* The call that a task is in, by its saved registers. */
static __always_inline u16 saved_call(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	long nr = CALL_NUMBER(regs);

	return nr >= 0 && nr < CALLS_MAX ? call_numbered(task, nr) : NO_CALL;
}

static __always_inline u16 current_call(void)
{
	return saved_call(bpf_get_current_task_btf());
}

static __always_inline void send_event(u32 kind, u32 tid, u32 tgid, u64 now,
				       u64 value, u64 value2, const void *text)
{
	struct event_record *e = reserve(&rare, sizeof(*e));

	if (!e) {
		lost(LOSS_RARE_RING);
		return;
	}
	e->type = RECORD_EVENT;
	e->kind = kind;
	e->tid = tid;
	e->tgid = tgid;
	e->time_ns = now;
	e->value = value;
	e->value2 = value2;
	e->text[0] = 0;
	if (text)
		bpf_probe_read_kernel_str(e->text, sizeof(e->text), text);
	bpf_ringbuf_submit(e, ring_flags(&rare));
}

#endif
