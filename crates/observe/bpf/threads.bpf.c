/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Threads on and off the CPU.
 */
#include "threads.h"
#include "presence.h"
#include "throttle.h"

/* A thread that goes to sleep is off its queue this long at most before it is switched out. */
#define WOKEN_EARLY_NS	10000000

/* It was woken while it ran, and did not sleep then. Another CPU may wake it at this moment. */
static __always_inline void forget_old_wakeup(struct thread *t, u64 now)
{
	u64 woken = t->woken;

	if (woken && (s64)(now - woken) > WOKEN_EARLY_NS)
		__sync_val_compare_and_swap(&t->woken, woken, 0);
}

/* What the programs of system calls would have noted: its entry, and that it has come out of the one before. */
static __always_inline void call_is_unreported(struct thread *t)
{
	t->call = current_call();
	if (t->binding)
		look_at_binding(t);
	if (t->call != NO_CALL && t->base == ACCT_KERNEL)
		t->base = ACCT_USER;
}

/* Its user stack, which only it can walk itself. Not static, as hold_class. */
__noinline int walk_before_sleep(struct thread *t)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	if (!cpu || !t)
		return 0;
	if (cpu->walks_epoch != epoch + 1) {
		cpu->walks_epoch = epoch + 1;
		cpu->walks = WALKS_OF_CPU;
	}
	t->walks--;
	if (!cpu->walks)
		return 0;
	cpu->walks--;
	t->walked = user_stack_here(cpu, t->tgid);
	copy_sampled(t->walked);
	return 0;
}

/*
 * Without the programs of calls a thread's first step after a sleep may be one that it takes elsewhere,
 * so that its stack is walked before: at its first sleeps, and each second at some after a long one. At all
 * of a busy server that would take longer than all else.
 */
static __always_inline void leaves_cpu(struct thread *t, u32 open)
{
	t->walked = 0;
	if (calls_off && t->walks && open >= ACCT_BLOCKED)
		walk_before_sleep(t);
}

static __always_inline void switch_out(void *ctx, struct cpu *cpu,
				       struct task_struct *prev, bool preempt,
				       u32 state, u64 now)
{
	u32 slot = cpu->slot, open;
	struct thread *t = thread_in(slot);

	if (!t)
		return;
	charge(cpu, t, now);
	if (t->pending)
		send_pending(t);
	if (state & TASK_DEAD) {
		keep_waits(t);
		keep_errors(t);
		send_last_record(t, prev, now, false);
		bpf_task_storage_delete(&thread_slots, prev);
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
		__sync_fetch_and_add(&watched, -1);
		return;
	}
	t->object = 0;
	t->lock_like = 0;
	t->asked = 0;
	t->cut = t->idle = 0;
	forget_ends(t);
	forget_old_wakeup(t, now);
	if (calls_off)
		call_is_unreported(t);
	if (!preempt && is_stopped(prev, state))
		open = ACCT_STOPPED;
	else if (!preempt && (state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
		open = sleep_account(ctx, cpu, t, prev, state);
	else	/* a sleeper in a throttled group sleeps all the same */
		open = is_throttled(prev) ? ACCT_THROTTLED : ACCT_RUNNABLE_PREEMPTED;
	leaves_cpu(t, open);
	t->off_account = open;
	t->off_since = t->slept_from = now;
	t->wake_ns = now;
	/* From here on another CPU may wake it: it takes the sleep's beginning from above. */
	barrier();
	t->open = open;
	if (open >= ACCT_BLOCKED) {
		t->sleeps++;
		if (t->got)
			note_idle_turn(t);
	} else {
		t->preemptions++;
		note_queue(t, prev);
	}
}

/* An interrupt for which a thread that was ready had to wait. Not static, as hold_class. */
__noinline int keep_one_served(struct thread *t, struct served *s)
{
	u64 from;

	if (!t || !s)
		return 0;
	from = s->since > t->wake_ns ? s->since : t->wake_ns;
	t->sleep.served_ns += s->until - from;
	if (s->until - from > t->sleep.longest.until - t->sleep.longest.since) {
		t->sleep.longest = *s;
		t->sleep.longest.since = from;
	}
	return 0;
}

/* The interrupts for which a thread that was ready had to wait here. */
static __always_inline void keep_served(struct cpu *cpu, struct thread *t)
{
	u32 i;

	t->sleep.served_ns = 0;
	t->sleep.longest.until = t->sleep.longest.since = 0;
	for (i = 0; i < SERVED_SEEN; i++) {
		struct served *s = &cpu->served[(cpu->served_head - 1 - i) & (SERVED_SEEN - 1)];

		if (s->until <= t->wake_ns)
			break;
		keep_one_served(t, s);
	}
}

/* Moments are left out, or they crowd out a hog before them. Not static, as hold_class. */
__noinline int keep_runner(struct thread *t, struct ran *ran, u64 now)
{
	if (!t || !ran || !ran->who.tid)
		return 0;
	if (ran_since(ran, t->wake_ns) >= (now - t->wake_ns) / 16)
		t->sleep.ran[t->sleep.ran_count++ & (RAN_KEPT - 1)] = *ran;
	return 0;
}

/* Who had the CPU from when a thread was ready until `now`, and the interrupts meanwhile. */
__noinline int keep_runners(struct cpu *cpu, struct thread *t, u64 now)
{
	u32 i;

	if (!cpu || !t)
		return 0;
	t->sleep.ran_count = 0;
	for (i = 0; i < RAN_SEEN; i++) {
		struct ran *ran = &cpu->ran[(cpu->ran_head - 1 - i) & (RAN_SEEN - 1)];

		if (ran->until <= t->wake_ns || t->sleep.ran_count >= RAN_KEPT)
			break;
		keep_runner(t, ran, now);
	}
	keep_served(cpu, t);
	return 0;
}

/* Most threads that have slept for long do so again soon. */
static __always_inline void may_walk(struct thread *t)
{
	u8 now = epoch + 1;

	if (t->off_account < ACCT_BLOCKED || t->walks_epoch == now)
		return;
	t->walks_epoch = now;
	t->walks = WALKS;
}

/* Keeps a long absence from the CPU whole. */
static __noinline void keep_sleep(struct task_struct *next, u64 now, u64 throttled_ns)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(next);
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t = current_thread();

	if (!cpu || !t)
		return;
	t->sleep_kind = t->off_account >= ACCT_BLOCKED &&
			t->wake_ns - t->off_since >= threshold_ns ?
			OUTLIER_OFF_CPU : OUTLIER_RUN_QUEUE;
	t->sleep_cpu = bpf_get_smp_processor_id();
	t->sleep.start = t->off_since;
	t->sleep.wake = t->wake_ns;
	t->sleep.ns = now - t->off_since;
	t->sleep.account = t->off_account;
	t->sleep_throttled = throttled_ns;
	t->sleep_ip = INSTRUCTION(regs);
	may_walk(t);
	if (t->call != NO_CALL)
		call_arguments(next, t->sleep_arguments);
	t->sleep.object = t->object;
	t->sleep.fault_ip = t->off_account == ACCT_FAULT_MAJOR ||
			    t->off_account == ACCT_FAULT_MINOR ? t->fault_ip : 0;
	t->sleep.waker = t->waker;
	t->sleep.timer = t->timer;
	t->sleep.waker_context = t->waker_context;
	__builtin_memset(&t->sleep.holder, 0, sizeof(t->sleep.holder));
	t->sleep.kernel_stack = t->lock ? t->lock_stack :
					  stack_of_sleeper(cpu, next);
	keep_runners(cpu, t, now);
	t->pending = 1;
	if (t->call != NO_CALL && t->sleep.ns > t->longest) {
		t->longest = t->sleep.ns;
		t->call_sleep = t->sleep;
	}
}

/* How long ago a thread that comes to a CPU should have come. */
static __always_inline u64 lateness(struct thread *t, u64 now)
{
	if (t->timer.fired && !t->timer.jiffies && t->timer.softexpires < now)
		return now - t->timer.softexpires;
	return now - t->wake_ns;
}

/* Who ended its last sleep, for who asks later what it was woken for. */
static __always_inline void note_woken_by(struct thread *t)
{
	bool by_thread = t->waker_context == CTX_TASK;

	t->woken_by = by_thread ? t->waker.tid : 0;
	t->woken_by_tgid = by_thread ? t->waker.tgid : 0;
	t->woken_at = t->wake_ns;
}

/*
 * Adds the absence that ends now to what is remembered of such. Not static, as hold_class; one function for
 * all of it, because each call of one takes 5 to 10 ns.
 */
__noinline int keep_absence(struct thread *t, bool throttled, u64 now)
{
	bool slept;

	if (!t)
		return 0;
	slept = t->off_account >= ACCT_BLOCKED;
	if (slept) {
		count_here(t->off_hist, now - t->off_since);
		add_wait(t, now);
	}
	count_here(t->run_hist, now - t->wake_ns);
	keep_step(t, slept, throttled, now);
	return 0;
}

static __always_inline void switch_in(struct cpu *cpu, struct task_struct *prev,
				      struct task_struct *next, u64 now)
{
	struct thread *t;
	u64 off, delay, throttled_ns;
	bool slept, throttled;

	t = thread_in(cpu->slot);
	if (!t)
		return;
	/* Asleep and yet chosen: it was woken before it was off the CPU, */
	if (t->open >= ACCT_BLOCKED) {
		if (t->woken) {
			t->open = ACCT_RUNNABLE_WAKEUP;
		} else {	/* no wakeup was reported: it counts as asleep */
			cpu->losses[LOSS_SWITCH]++;
			t->wake_ns = now;
			put_end(t, END_UNKNOWN, now - t->off_since);
		}
	}
	charge(cpu, t, now);
	slept = t->off_account >= ACCT_BLOCKED;
	/* The clock of another CPU may be ahead: no time is less than none. */
	if ((s64)(now - t->off_since) < 0)
		now = t->off_since;
	if ((s64)(now - t->wake_ns) < 0)
		now = t->wake_ns;
	off = now - t->off_since;
	delay = now - t->wake_ns;
	throttled_ns = kept_by_quota(t, next, now);
	if (throttled_ns && t->open != ACCT_THROTTLED)
		move_time(t, t->open, ACCT_THROTTLED, throttled_ns);
	throttled = throttled_ns > delay / 2;
	if (throttled && !slept)
		t->off_account = ACCT_THROTTLED;
	if (slept) {
		note_woken_by(t);
		if (!t->off_hist)
			t->off_hist = hist_slot(t->tgid, HIST_OFF_CPU, 0);
		if (t->off_account == ACCT_SOCKET_SEND)
			send_waited(t, next);
		if (sleeps_inside(t->off_account))
			add_sleep_path(next, t->wake_ns - t->off_since);
		if (t->off_account == ACCT_FAULT_MAJOR ||
		    t->off_account == ACCT_FAULT_MINOR)
			hist_count(hist_slot(t->tgid, HIST_FAULT, 0), off);
	}
	if (!t->run_hist)
		t->run_hist = hist_slot(t->tgid, HIST_RUN_QUEUE, 0);
	keep_absence(t, throttled, now);
	if (delay > RUNNER_MIN_NS && !throttled)
		add_runners(t, cpu, now);
	if ((late_only ? lateness(t, now) : off) >= threshold_ns)
		keep_sleep(next, now, throttled_ns);
	if (slept) {
		take_turn(t);
		note_work(t);
		note_object(t);
	}
	t->dirty_pause = 0;
	t->waker.tid = t->waker.tgid = 0;
	t->timer.fired = 0;
	t->by_waiter = 0;
	t->woken = 0;
	t->open = base_account(t);
	/* With the programs of calls, too, which may be given up before it ends. */
	if (t->binding)
		still_binding(t);
}

/* `prev` had the CPU until now. */
static __always_inline void note_ran(struct cpu *cpu, struct task_struct *prev, u64 now)
{
	u64 head = cpu->ran_head;
	struct ran *ran = &cpu->ran[head & (RAN_SEEN - 1)];

	if (prev->pid)
		note_presence(cpu, prev, ran->since, now);
	ran->until = now;
	set_who(&ran->who, prev);
	ran->realtime = priority_of(prev);
	cpu->ran_head = head + 1;
	cpu->ran[(head + 1) & (RAN_SEEN - 1)].since = now;
}

/*
 * When recording stopped it was alive, and the walk over all tasks that comes
 * then may not find it any more.
 */
static __noinline void died_after_stop(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (!t)
		return;
	send_without_stack(t, task);
	keep_waits(t);
	keep_errors(t);
	send_last_record(t, task, bpf_ktime_get_ns(), true);
	bpf_task_storage_delete(&thread_slots, task);
	__sync_fetch_and_add(&watched, -1);
}

static __always_inline int switched(void *ctx, bool preempt,
				    struct task_struct *prev,
				    struct task_struct *next, u32 prev_state)
{
	struct cpu *cpu = this_cpu(PROG_SCHED_SWITCH);
	u32 next_slot;
	u64 now;

	/* Some kernels let the verifier think that a tracepoint may pass NULL. */
	if (!cpu || !prev || !next)
		return 0;
	if (stopped) {
		if (prev_state & TASK_DEAD)
			died_after_stop(prev);
		return 0;
	}
	/* Interrupts are off: only a lock of our own that is waited for comes in between. */
	cpu->busy = 1;
	/* Nobody switches within an interrupt: an exit may have been missed. */
	cpu->in_hardirq = cpu->in_softirq = 0;
	/* Before all else, that the verifier looks at it once. */
	next_slot = next->pid ? known_slot_of(cpu, next) : 0;
	now = bpf_ktime_get_ns();
	if (cpu->slot)
		switch_out(ctx, cpu, prev, preempt, prev_state, now);
	cpu->task = (u64)next;
	cpu->slot = next_slot;
	note_ran(cpu, prev, now);
	if (next->pid)
		switch_in(cpu, prev, next, now);
	cpu->busy = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	return switched(ctx, preempt, prev, next, prev_state);
}

/* 5.18.0 passed it second. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_state_second, bool preempt, unsigned int prev_state,
	     struct task_struct *prev, struct task_struct *next)
{
	return switched(ctx, preempt, prev, next, prev_state);
}

/* Before 5.18; a wakeup that comes in between makes a sleep a preemption. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_no_state, bool preempt, struct task_struct *prev,
	     struct task_struct *next)
{
	return switched(ctx, preempt, prev, next, prev->__state);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p)
{
	struct cpu *cpu = only_cpu(PROG_SCHED_MIGRATE_TASK);
	struct thread *t;

	if (!cpu || stopped || !p)
		return 0;
	t = thread_in(stored_slot_of(p));
	if (t)
		t->migrations++;
	return 0;
}
