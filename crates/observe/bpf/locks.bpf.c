/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Contended kernel locks: spinning is an account of its own, sleeping is
 * named after the lock. A slot for each, because a mutex is waited for with
 * spinlocks taken inside.
 */
#include "threads.h"
#include "beside.h"

static __always_inline bool in_text(u64 ip, const volatile u64 *range)
{
	return ip >= range[0] && ip < range[1];
}

/*
 * The first caller outside the lock and scheduler functions in cpu->stack.
 * A stack is looked at here, where the wait begins: that of a sleeper, taken
 * later, leaves these functions out.
 */
static __noinline u64 lock_taken_at(u32 count)
{
	u32 zero = 0, i;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	bool inside = false;

	if (!cpu)
		return 0;
	for (i = 0; i < 16; i++) {
		u64 ip = cpu->stack.frames[i];

		if (i >= count)
			break;
		if (in_text(ip, sched_text) || in_text(ip, lock_text))
			inside = true;
		else if (inside)
			return ip;
	}
	return 0;
}

static __always_inline u32 lock_account(u32 flags)
{
	if (flags & LCB_F_MUTEX)
		return ACCT_MUTEX;
	if (flags & LCB_F_RT)
		return ACCT_RT_MUTEX;
	if (flags & LCB_F_PERCPU)
		return ACCT_OTHER_LOCK;
	if (flags & (LCB_F_READ | LCB_F_WRITE))
		return ACCT_RWSEM;
	return ACCT_OTHER_LOCK;
}

static __always_inline void spin_begins(struct cpu *cpu, struct thread *t,
					u64 lock, u64 now)
{
	charge(cpu, t, now);
	t->spin_lock = lock;
	t->spin_start = now;
	t->spin_base = t->base;
	t->base = t->open = ACCT_SPIN;
}

static __always_inline void spin_ends(struct cpu *cpu, struct thread *t, u64 now)
{
	charge(cpu, t, now);
	t->spin_lock = 0;
	t->base = t->spin_base;
	t->open = base_account(t);
}

static __always_inline void sleep_begins(void *ctx, struct cpu *cpu,
					 struct thread *t, u64 lock, u32 flags,
					 u64 now)
{
	u64 mm = t->mm_waited;

	t->lock_stack = kernel_stack_here(ctx, cpu);
	t->lock = lock;
	t->lock_start = now;
	if (mm && lock == mm + bpf_core_field_offset(struct mm_struct, mmap_lock)) {
		t->lock_account = t->mm_write ? ACCT_MMAP_LOCK_WRITE :
						ACCT_MMAP_LOCK_READ;
		t->lock_class = t->mm_write ? LOCK_CLASS_MMAP_WRITE :
					      LOCK_CLASS_MMAP_READ;
		mm_wait_begins(now);
	} else {
		t->lock_account = lock_account(flags);
		t->lock_class = lock_taken_at(cpu->stack.count);
	}
}

static __always_inline void contention_begins(void *ctx, struct cpu *cpu,
					      struct thread *t, void *lock,
					      u32 flags)
{
	u64 now = bpf_ktime_get_ns();

	if (flags & LCB_F_SPIN) {
		if (!t->spin_lock)
			spin_begins(cpu, t, (u64)lock, now);
		else if (t->spin_lock != (u64)lock)
			cpu->losses[LOSS_NESTED_LOCK]++;
		return;
	}
	if (t->spin_lock == (u64)lock)
		spin_ends(cpu, t, now);	/* a mutex: spun, now sleeps */
	if (!t->lock)
		sleep_begins(ctx, cpu, t, (u64)lock, flags, now);
	else if (t->lock != (u64)lock)
		cpu->losses[LOSS_NESTED_LOCK]++;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, unsigned int flags)
{
	struct cpu *cpu;
	struct thread *t;

	if (in_own_program())
		return 0;
	cpu = this_cpu(PROG_CONTENTION_BEGIN);
	if (!cpu || cpu->in_hardirq || in_any_softirq(cpu))
		return 0;	/* part of the interrupt's own time */
	t = this_thread(cpu);
	if (!t || !enter(cpu))
		return 0;
	contention_begins(ctx, cpu, t, lock, flags);
	leave(cpu);
	return 0;
}

/* A recorded call that it is part of is kept whole. */
static __always_inline bool is_part_of_call(struct thread *t)
{
	return !calls_off && t->call != NO_CALL;
}

static __always_inline void spun_for(void *ctx, struct cpu *cpu, struct thread *t, u64 now)
{
	u64 ns = now - t->spin_start, like = 0;

	if (ns >= spun_min_ns)
		like = stands_for(t, ns, SPIN_SAMPLE_NS, now);
	if (like)
		spun(t->tgid, kernel_stack_here(ctx, cpu), ns, like);
	if (ns >= threshold_ns && !is_part_of_call(t))
		send_event(EVENT_SPIN, t->tid, t->tgid, t->spin_start, ns, call_here(t), NULL);
	hist_count(hist_slot(t->tgid, HIST_LOCK, LOCK_CLASS_SPIN), ns);
}

static __always_inline void contention_ends(void *ctx, struct cpu *cpu,
					    struct thread *t, void *lock)
{
	u64 now = bpf_ktime_get_ns();

	if (t->spin_lock == (u64)lock) {
		spun_for(ctx, cpu, t, now);
		spin_ends(cpu, t, now);
	}
	if (t->lock == (u64)lock) {
		hist_count(hist_slot(t->tgid, HIST_LOCK, t->lock_class),
			   now - t->lock_start);
		t->lock = 0;
	}
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int ret)
{
	struct cpu *cpu;
	struct thread *t;

	if (in_own_program())
		return 0;
	cpu = this_cpu(PROG_CONTENTION_END);
	if (!cpu || cpu->in_hardirq || in_any_softirq(cpu))
		return 0;
	t = this_thread(cpu);
	if (!t || !lock || !enter(cpu))
		return 0;
	contention_ends(ctx, cpu, t, lock);
	leave(cpu);
	return 0;
}
