/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* Begins to watch a thread, and reports its end. */
#ifndef WHYLAG_THREADS_H
#define WHYLAG_THREADS_H

#include "state.h"
#include "hists.h"
#include "rings.h"
#include "stacks.h"
#include "sleeps.h"
#include "waits.h"
#include "runners.h"
#include "chains.h"
#include "news.h"
#include "sends.h"
#include "mm_locks.h"
#include "paths.h"
#include "linker.h"

/*
 * Room for dump_threads, too large for its stack. The union also makes the
 * types of the ring buffers and iterators known to the generator of the Rust side.
 */
union record {
	struct thread_record thread;
	struct outlier_record outlier;
	struct event_record event;
	struct mapping_record mapping;
	struct queue_record queue;
	struct words_record words;
	struct request_record request;
	struct python_record python;
	struct code_record code;
	struct room_record room;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, union record);
} dump_buffer SEC(".maps");

/* The thread is in call `nr` and has been since before it was watched. */
static __always_inline void already_in_call(struct thread *t, u16 nr)
{
	t->call = nr;
	if (nr == NO_CALL)
		return;
	t->call_at = first_slot(nr);
	call_slot(t)->nr = nr;
	call_slot(t)->used = 1;
	t->base = ACCT_SYSCALL;
}

/* Says which slots are in use, so that there is a further block long before the last is full. */
static __always_inline void ask_for_room(u32 slot)
{
	struct room_record *r;

	r = reserve(&rare, sizeof(*r));
	if (!r)
		return;	/* it is asked for again in the next block, or when none is left */
	r->type = RECORD_ROOM;
	r->slot = slot;
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

/* So many sleeps have their user stacks walked where calls are not reported. A walk takes about 1 us. */
#define FIRST_WALKS	2	/* of a thread, from its begin on */
#define WALKS		128	/* a second, of one that has slept for long */
#define WALKS_OF_CPU	512	/* a second, of all there */

/* A slot for another thread, 0 if there is no room. */
static __always_inline u32 new_slot(void)
{
	u32 slot = 0;

	if (!bpf_map_pop_elem(&free_slots, &slot))
		return slot;
	if (block_of(slot_next)) {
		slot = __sync_fetch_and_add(&slot_next, 1);
		if (slot % BLOCK_THREADS == BLOCK_THREADS / 4)
			ask_for_room(slot);
		return slot;
	}
	if (slot_next / BLOCK_THREADS < thread_blocks) {
		without_room++;
		ask_for_room(slot_next);
	}
	return 0;
}

/*
 * Prepares to watch `task` in slot `*slot`, in account `open`, at `now`; NULL if there is no room. Other
 * CPUs see it only after watch(): until then the caller may complete it.
 */
static __always_inline struct thread *
prepare(struct task_struct *task, u32 *slot, u64 now, u32 open, u32 base)
{
	struct thread *t, *blank = blank_thread();
	void *block;
	u32 at;

	*slot = new_slot();
	if (!*slot)
		return NULL;
	block = block_of(*slot);
	at = *slot % BLOCK_THREADS;
	if (block && blank)
		bpf_map_update_elem(block, &at, blank, BPF_ANY);
	t = in_block(block, at);
	if (!t)
		return NULL;	/* other CPUs took the last of a block at the same time */
	t->first_ns = t->since = now;
	t->open = open;
	t->base = base;
	t->tid = tid_of(task);
	t->tgid = tgid_of(task);
	t->call = NO_CALL;
	t->off_since = t->slept_from = t->wake_ns = now;
	t->off_account = open;
	t->min_flt = task->min_flt;
	t->maj_flt = task->maj_flt;
	t->linker = linker_of(task);
	t->walks = FIRST_WALKS;
	t->changed = 1;
	return t;
}

static __always_inline void watch(struct task_struct *task, u32 slot)
{
	u32 *kept = bpf_task_storage_get(&thread_slots, task, 0,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!kept)
		lost(LOSS_THREAD);
	/* Its fork and a walk may both have come to watch it. */
	if (!kept || __sync_val_compare_and_swap(kept, 0, slot))
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	else
		__sync_fetch_and_add(&watched, 1);
}

/* The CPUs that a thread may run on: its own mask, and what its cpuset leaves of it. */
static __always_inline void fill_cpus(struct thread_record *r, struct task_struct *task)
{
	u32 bytes = bpf_core_field_size(task->cpus_mask);

	__builtin_memset(r->cpus, 0, sizeof(r->cpus));
	/* Most of the kernel's own have one CPU each. */
	if (task->flags & PF_KTHREAD)
		return;
	if (bytes > sizeof(r->cpus))
		bytes = sizeof(r->cpus);
	bpf_probe_read_kernel(r->cpus, bytes, &task->cpus_mask);
}

/* Fills a record from a thread; `now` extends the open account. */
static __always_inline void fill_record(struct thread_record *r,
					struct thread *t,
					struct task_struct *task, u64 now)
{
	r->type = RECORD_THREAD;
	r->tid = t->tid;
	r->tgid = t->tgid;
	r->open = t->open;
	r->open_call = t->call;
	r->first_ns = t->first_ns;
	r->since = t->since;
	r->now = now;
	r->minor_faults = task->min_flt - t->min_flt;
	r->major_faults = task->maj_flt - t->maj_flt;
	r->sleeps = t->sleeps;
	r->preemptions = t->preemptions;
	r->migrations = t->migrations;
	r->realtime = priority_of(task);
	__builtin_memcpy(r->accounts, t->accounts, sizeof(r->accounts));
	__builtin_memcpy(r->calls, t->calls, sizeof(r->calls));
	fill_cpus(r, task);
	r->object = r->ip = r->sp = r->fp = 0;
	__builtin_memcpy(r->comm, task->comm, sizeof(r->comm));
}

/* Its memory cannot be read from here: the loader does, where the sleep was long. */
static __always_inline void fill_place(struct thread_record *r, struct thread *t,
				       struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	if (t->open < ACCT_BLOCKED || task->flags & PF_KTHREAD)
		return;
	r->object = t->object;
	r->ip = INSTRUCTION(regs);
	r->sp = STACK_TOP(regs);
	r->fp = FRAME_POINTER(regs);
}

static __always_inline void send_last_record(struct thread *t,
					     struct task_struct *task, u64 now,
					     bool alive)
{
	struct thread_record *r = reserve(&rare, sizeof(*r));

	if (!r) {
		lost(LOSS_RARE_RING);
		return;
	}
	fill_record(r, t, task, now);
	r->alive = alive;
	bpf_ringbuf_submit(r, ring_flags(&rare));
}

static __always_inline void send_sleep(struct cpu *cpu, struct thread *t, struct task_struct *task,
				       u64 user_stack, u64 copy)
{
	struct outlier_record *o = reserve(&outliers, SHORT_OUTLIER);
	u32 account = t->sleep.account, i;

	if (!o) {
		cpu->losses[LOSS_EVENT_RING]++;
		return;
	}
	__builtin_memset(o, 0, SHORT_OUTLIER);
	o->type = RECORD_OUTLIER;
	o->kind = t->sleep_kind;
	o->tid = t->tid;
	o->tgid = t->tgid;
	o->cpu = t->sleep_cpu;
	o->call = t->call;
	o->start_ns = t->sleep.start;
	o->duration_ns = t->sleep.ns;
	o->user_stack = user_stack;
	o->copy = copy;
	o->sleep = t->sleep;
	if (account == ACCT_MMAP_LOCK_READ || account == ACCT_MMAP_LOCK_WRITE) {
		o->sleep.holder = t->holder;
		/* Else the end of the call does it. */
		if (t->call == NO_CALL || calls_off)
			t->holder.since = t->holder.until = 0;
	}
	for (i = 0; i < 6 && t->call != NO_CALL; i++)
		o->args[i] = t->sleep_arguments[i];
	o->throttled = t->sleep_throttled;
	__builtin_memcpy(o->comm, task->comm, sizeof(o->comm));
	bpf_ringbuf_submit(o, ring_flags(&outliers));
}

/* The place that it slept at: all that is known of a stack that was not walked before. */
static __always_inline u64 place_of_sleep(struct cpu *cpu, struct thread *t)
{
	struct python_walk *python = pythons ? python_walk() : NULL;

	if (no_stacks || !t->sleep_ip)
		return 0;
	if (python)
		forget_python(python);
	cpu->stack.frames[0] = t->sleep_ip;
	return send_stack(t->tgid, sizeof(cpu->stack.frames[0]));
}

/*
 * The last long sleep is sent at the thread's next step on a CPU, because its
 * user stack can be walked only from there: where calls are reported, that is
 * in the same call.
 */
__noinline int send_pending(struct thread *t)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	u64 user_stack, copy = 0;

	if (!cpu || !t)
		return 0;
	t->pending = 0;
	if (t->binding) {
		user_stack = t->binding;
	} else if (calls_off) {
		user_stack = t->walked ? t->walked : place_of_sleep(cpu, t);
	} else {
		user_stack = user_stack_here(cpu, t->tgid);
		copy = copy_here(t, user_stack);
	}
	send_sleep(cpu, t, bpf_get_current_task_btf(), user_stack, copy);
	return 0;
}

/* Recording has stopped before that step: what is known without it. */
static __always_inline void send_without_stack(struct thread *t, struct task_struct *task)
{
	struct cpu *cpu;
	u32 zero = 0;

	if (!t->pending || !__sync_val_compare_and_swap(&t->pending, 1, 0))
		return;
	cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (cpu)
		send_sleep(cpu, t, task, calls_off ? t->walked : 0, 0);
}

/* Up to now it is in the linker. */
static __always_inline void still_binding(struct thread *t)
{
	u32 i;

	t->binding_until = t->since;
	for (i = 0; i < ACCT_BLOCKED; i++)
		t->binding_had[i] = had_in_call(t, i);
}

static __always_inline void binding_begins(struct thread *t, u64 ip, u64 sp,
					   u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();

	t->binding = send_words(t, ip, sp);
	t->binding_start = now;
	t->binding_min_flt = task->min_flt;
	t->binding_maj_flt = task->maj_flt;
	t->in_call_of = 0;
	still_binding(t);
}

/*
 * Keeps a first call whole if it was long, read the disk, or is asked for. What went before is charged already.
 * Without the programs of calls nothing tells when it left the linker: it did not sleep since it was last seen
 * there, so that what it waited for is known, and only what it computed after that is missing.
 */
static __always_inline void binding_ends(struct cpu *cpu, struct thread *t,
					 u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct outlier_record *o;
	u64 id = t->binding;
	u32 i;

	if (calls_off)
		now = t->binding_until;
	t->binding = 0;
	if (!every_first_call && now - t->binding_start < threshold_ns &&
	    task->maj_flt == t->binding_maj_flt)
		return;
	o = reserve(&outliers, sizeof(*o));
	if (!o) {
		cpu->losses[LOSS_EVENT_RING]++;
		return;
	}
	__builtin_memset(o, 0, sizeof(*o));
	o->type = RECORD_OUTLIER;
	o->kind = OUTLIER_FIRST_CALL;
	o->tid = t->tid;
	o->tgid = t->tgid;
	o->cpu = bpf_get_smp_processor_id();
	o->call = NO_CALL;
	o->start_ns = t->binding_start;
	o->duration_ns = now - t->binding_start;
	o->user_stack = id;
	o->minor_faults = task->min_flt - t->binding_min_flt;
	o->major_faults = task->maj_flt - t->binding_maj_flt;
	for (i = 0; i < ACCT_MAX; i++)
		o->breakdown[i] = calls_off && i < ACCT_BLOCKED ? t->binding_had[i] : had_in_call(t, i);
	bpf_get_current_comm(o->comm, sizeof(o->comm));
	bpf_ringbuf_submit(o, ring_flags(&outliers));
}

/* Without the programs of calls: it has run for so long since that it has been elsewhere. */
static __always_inline bool is_another_binding(struct thread *t, u64 now)
{
	return calls_off && now - t->binding_until > BINDING_RUNS_NS;
}

/* The current thread faulted at `ip`, or, if that is 0, enters a system call. */
__noinline int step_of_binding(u64 ip, u64 sp)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t = current_thread();
	u64 now;

	if (!cpu || !t)
		return 0;
	now = bpf_ktime_get_ns();
	charge(cpu, t, now);
	if (t->pending)
		send_pending(t);
	if (t->binding && (!in_linker(t, ip) || is_another_binding(t, now)))
		binding_ends(cpu, t, now);
	if (!in_linker(t, ip))
		return 0;
	if (t->binding)
		still_binding(t);
	else
		binding_begins(t, ip, sp, now);
	return 0;
}

/* The current thread leaves its CPU, and its calls are not reported. Not static, as hold_class. */
__noinline int look_at_binding(struct thread *t)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (cpu && t && (t->call != NO_CALL || !in_linker(t, INSTRUCTION(regs))))
		binding_ends(cpu, t, t->since);
	return 0;
}

/*
 * ns the hypervisor has taken from the CPU that `task` runs on, as its run
 * queue has noticed at ticks; 0 where the host does not report it.
 */
static __always_inline u64 steal_clock(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct rq, prev_steal_time))
		return 0;
	return task->se.cfs_rq->rq->prev_steal_time;
}

/* The time that a timer interrupt puts into a thread's open account. */
static __always_inline void note_piece(struct cpu *cpu, struct thread *t, u64 now)
{
	struct piece *p = &cpu->timed;
	u64 ns = now - t->since;

	p->steal = steal_clock(bpf_get_current_task_btf());
	if ((s64)ns < 0)
		return;
	if (p->slot != cpu->slot || p->open != t->open ||
	    p->call_start != t->call_start || p->off_since != t->off_since)
		p->ns = 0;
	p->slot = cpu->slot;
	p->open = t->open;
	p->call_start = t->call_start;
	p->off_since = t->off_since;
	p->ns += ns;
}

/* Moves time from the account that it was put into to one that is no system call. Not static, as hold_class. */
__noinline int move_time(struct thread *t, u32 open, u32 to, u64 ns)
{
	if (!t || to >= ACCT_MAX)
		return 0;
	if (open == ACCT_SYSCALL) {
		struct call_sum *sum = call_slot(t);

		if (sum->ns < ns)
			return 0;
		sum->ns -= ns;
	} else {
		if (open >= ACCT_MAX || t->accounts[open] < ns)
			return 0;
		t->accounts[open] -= ns;
	}
	t->accounts[to] += ns;
	t->changed = 1;
	if (t->call == NO_CALL && !t->binding)
		return 0;
	if (open != ACCT_SYSCALL) {
		u64 had = had_in_call(t, open);

		t->in_call[open] = had > ns ? had - ns : 0;
		t->in_call_of |= 1ULL << open;
	}
	t->in_call[to] = had_in_call(t, to) + ns;
	t->in_call_of |= 1ULL << to;
	return 0;
}

/*
 * The kernel notices what the hypervisor took in its tick, within the timer's
 * interrupt, when all of it has been put into the account of the thread that
 * was interrupted. It is moved then, at the end of that interrupt.
 */
static __always_inline void take_stolen(struct cpu *cpu)
{
	struct piece *p = &cpu->timed;
	struct thread *t;
	u64 ns;

	if (!cpu->slot || p->slot != cpu->slot)
		return;
	ns = steal_clock(bpf_get_current_task_btf()) - p->steal;
	if ((s64)ns <= 0 || !enter(cpu))
		return;
	t = this_thread(cpu);
	if (t)
		move_time(t, p->open, ACCT_STOLEN, ns < p->ns ? ns : p->ns);
	p->ns = 0;
	leave(cpu);
}

#endif
