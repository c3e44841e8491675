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
#include "softirqs.h"
#include "thread.h"

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
const volatile u32 page_bytes;
const volatile u64 spun_min_ns;	/* for shorter waits the other CPUs are not looked at */
const volatile u32 hist_slots;		/* slots of hists, both halves */
const volatile u32 thread_blocks;	/* blocks of threads, at most, the first included */
const volatile u8 call_kinds[CALLS_MAX];	/* enum call_kind */

/* ---- set by the loader before they are attached: it looks while the programs are loaded ---- */

/* Code of the kernel's lock and scheduler functions, to step over. */
u64 sched_text[2], lock_text[2];
u64 handle_mm_fault_text[2];

/* ---- changed by the loader while they run ---- */

u64 threshold_ns;	/* intervals this long are kept whole */
u32 sample_period_ns;	/* what a sample stands for */
u32 stopped;		/* nothing is charged, not yet or not any more */
u32 epoch;		/* histograms count into half epoch & 1 */
u32 calls_off;		/* there are no system call probes, or they were shed */
u32 locks_off;		/* the same of contention_begin */
u32 softirqs_off;	/* their time is not taken */
u32 dump_all;		/* the iterator gives unchanged threads too */
u32 taken;		/* threads that walks have begun to watch */
u32 roles_known;	/* the sockets that listen have been found */
u64 call_window_since;	/* system calls are sampled since, 0: not now */
u64 idle_ns;		/* answers to which nothing was added so long are complete */

/* ---- changed by the programs ---- */

u32 slot_next = BLOCK_THREADS;	/* next thread slot that was never used */
u32 without_room;	/* threads that found no block, where one could be */
u32 watched;		/* threads that have a slot */
u32 walks_took;		/* threads that a walk began to watch, which may have been on a CPU */

/* The last piece of time that was noted of a process. */
#define NOTED	16		/* a power of two */
struct noted {
	u64 piece;
	u32 tgid;
	u32 pad;
};

/* A watched task that a CPU has met, and its slot. Another task at that address began at another time. */
#define MET	16		/* a power of two */
struct met {
	u64 task, start_time;
	u32 slot;
	u32 pad;
};

/* What timer interrupts have put into one account of a thread since it began what it does. */
struct piece {
	u32 slot, open;
	u64 call_start, off_since;
	u64 ns;
	u64 steal;		/* what had been noticed of it when the last of them began */
};

/* One CPU's own state; programs on a CPU do not race for it. */
struct cpu {
	u64 task;		/* running here, as the last switch said */
	u32 slot;		/* of the watched thread running here, or 0 */
	u32 busy;		/* enter() without leave() */
	u32 took;		/* walks_took when `slot` was looked up */
	u32 in_hardirq;
	u32 in_softirq;		/* as long as its time is taken */
	u32 softirq_inline;	/* the running task's own call raised it */
	u32 in_timer;		/* the hardware interrupt is the timer's: who is woken had set one */
	u64 irq_start, irq_end;
	u64 softirq_start;
	u64 preempt_count_at;	/* see softirqs.h */
	u64 runs[PROG_MAX];
	u64 vain_calls;		/* of watched threads: they looked for something to do, and there was nothing */
	u64 losses[LOSS_MAX];
	struct timer firing;	/* its function runs now */
	u64 io_issued, io_done;	/* the last block request that ended here */
	u64 request_at;		/* data came last at a socket that answers */
	struct piece timed;
	u64 piece, piece_since;	/* of time, in which this CPU switched last, and its begin */
	u64 ran_head;
	u64 served_head;
	struct ran ran[RAN_SEEN];	/* what ran here last, a ring */
	struct served served[SERVED_SEEN];	/* the last interrupts, a ring */
	struct noted noted[NOTED];
	struct met met[MET];
	struct retry_sum asked;	/* of nothing yet: what a call asks for by name */
	struct stack_record stack;
	u32 stack_met;		/* how often it was met */
	u32 walks;		/* so many stacks may still be walked before sleeps */
	u32 walks_epoch;	/* in this one, counted from 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* The slot of a task, which it keeps for life: a look-up in its storage takes five times as long. */
static __always_inline u32 known_slot_of(struct cpu *cpu, struct task_struct *task)
{
	struct met *met = &cpu->met[task->pid & (MET - 1)];
	u32 slot;

	if (met->task == (u64)task && met->start_time == task->start_time)
		return met->slot;
	slot = slot_of(task);
	if (slot) {
		met->task = (u64)task;
		met->start_time = task->start_time;
		met->slot = slot;
	}
	return slot;
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
	/* The compiler is to test the register that it indexes with, or verifiers before 6.13 see no bound. */
	barrier_var(open);
	if (open >= ACCT_MAX)
		open = ACCT_UNACCOUNTED;
	t->accounts[open] += ns;
	if ((t->call != NO_CALL && !calls_off) || t->binding) {
		/* A new call clears the bits alone: most have time in one account or two. */
		t->in_call[open] = had_in_call(t, open) + ns;
		t->in_call_of |= 1ULL << open;
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

static __always_inline bool in_timed_softirq(struct cpu *cpu)
{
	return cpu->in_softirq && !softirqs_off;
}

/* The account of a running thread: interrupts come before its own work. */
static __always_inline u32 running_account(struct cpu *cpu, struct thread *t)
{
	if (cpu->in_hardirq)
		return ACCT_HARDIRQ;
	if (in_timed_softirq(cpu))
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
	cpu->slot = stored_slot_of(task);
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

/* This CPU, for a program that does not ask for the thread that runs on it, or has done so just before. */
static __always_inline struct cpu *only_cpu(u32 program)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (cpu)
		cpu->runs[program]++;
	return cpu;
}

/* The CPU that `current` runs on. */
static __always_inline struct cpu *cpu_of(struct task_struct *current, u32 program)
{
	struct cpu *cpu = only_cpu(program);

	if (!cpu)
		return NULL;
	if (cpu->task != (u64)current)
		meet_current();
	return cpu;
}

static __always_inline struct cpu *this_cpu(u32 program)
{
	return cpu_of(bpf_get_current_task_btf(), program);
}

static __always_inline bool in_any_softirq(struct cpu *cpu)
{
	return softirqs_off ? serves_softirq(&cpu->preempt_count_at) : cpu->in_softirq;
}

/*
 * A packet over loopback is delivered by a softirq within the call that sends it: then it is the
 * sender that wakes the receiver. So is what the receiver says of room that it has made.
 */
static __always_inline u32 context_of(struct cpu *cpu)
{
	if (cpu->in_hardirq)
		return CTX_HARDIRQ;
	/* Where their time is not taken nobody has looked whose call it is. */
	return in_any_softirq(cpu) && (softirqs_off || !cpu->softirq_inline) ? CTX_SOFTIRQ : CTX_TASK;
}

static __always_inline void lost(u32 kind)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (cpu && kind < LOSS_MAX)
		cpu->losses[kind]++;
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

/* The call that a thread is in which is on this CPU: its entry was not reported without their programs. */
static __always_inline u16 call_here(struct thread *t)
{
	return calls_off ? current_call() : t->call;
}

#endif
