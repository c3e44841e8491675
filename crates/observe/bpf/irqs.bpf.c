/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Interrupts: their time is taken out of the thread they interrupt. Softirqs
 * may be interrupted by hardware interrupts; the inner one counts.
 */
#include "threads.h"

/* A thread that ran already when a walk began to watch it is met here first. */
static __always_inline void look_again(struct cpu *cpu)
{
	u32 took = walks_took;

	if (cpu->took == took)
		return;
	cpu->took = took;
	if (!cpu->slot)
		cpu->slot = stored_slot_of(bpf_get_current_task_btf());
}

static __always_inline void interrupted(struct cpu *cpu, u64 now, bool tick)
{
	struct thread *t;

	look_again(cpu);
	if (!cpu->slot)
		return;
	/* A softirq's own program may be interrupted, too. */
	if (!enter(cpu))
		return;
	t = this_thread(cpu);
	if (t) {
		if (tick)
			note_piece(cpu, t, now);
		charge(cpu, t, now);
		/* It runs, even if its state was not known before. */
		t->open = running_account(cpu, t);
	}
	leave(cpu);
}

/* Histogram of the interrupts of a thread; those of devices have numbers of any size. */
static __always_inline u32 served_hist(struct thread *t, u32 kind, u64 id)
{
	u32 at = kind == HIST_SOFTIRQ ? id : id - VEC_LOCAL_TIMER + SOFTIRQS;

	if (at >= SERVED_HISTS || (kind == HIST_HARDIRQ && id < VEC_LOCAL_TIMER))
		return hist_slot(t->tgid, kind, id);
	if (!t->served_hists[at])
		t->served_hists[at] = hist_slot(t->tgid, kind, id);
	return t->served_hists[at];
}

static __always_inline void served(struct cpu *cpu, u32 kind, u64 id, u64 since,
				   u64 now)
{
	struct thread *t = this_thread(cpu);

	if (t)
		hist_count(served_hist(t, kind, id), now - since);
	if (!in_timed_softirq(cpu)) {
		u64 head = cpu->served_head++;
		struct served *s = &cpu->served[head & (SERVED_SEEN - 1)];

		s->since = since;
		s->until = now;
		s->kind = kind;
		s->id = id;
	}
}

/* x86 has a vector of its own for its CPU's timer, elsewhere it is an interrupt like others. */
static __always_inline bool may_tick(u64 id)
{
#ifdef __TARGET_ARCH_x86
	return id == VEC_LOCAL_TIMER;
#else
	return true;
#endif
}

static __always_inline void irq_begins(u32 program, u64 id)
{
	bool tick = id == VEC_LOCAL_TIMER;
	struct cpu *cpu = this_cpu(program);
	u64 now;

	if (!cpu || stopped)
		return;
	now = bpf_ktime_get_ns();
	if (!cpu->in_hardirq++) {
		cpu->irq_start = now;
		cpu->in_timer = tick;
	}
	interrupted(cpu, now, may_tick(id));
}

static __always_inline void irq_ends(u32 program, u64 id)
{
	struct cpu *cpu = only_cpu(program);
	u64 now;

	if (!cpu || stopped || !cpu->in_hardirq)
		return;	/* it began before the recording */
	now = bpf_ktime_get_ns();
	cpu->irq_end = now;
	if (!--cpu->in_hardirq)
		served(cpu, HIST_HARDIRQ, id, cpu->irq_start, now);
	interrupted(cpu, now, false);
	if (may_tick(id))
		take_stolen(cpu);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_entry, int irq)
{
	irq_begins(PROG_IRQ_HANDLER, irq);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit, int irq)
{
	irq_ends(PROG_IRQ_HANDLER, irq);
	return 0;
}

/* A softirq that an interrupt has raised follows its end at once. */
#define AFTER_IRQ_NS	2000

#define NET_RX	3		/* NET_RX_SOFTIRQ, include/linux/interrupt.h */

/* The call that is interrupted. Of tasks that are not watched it is looked up where it matters. */
static __always_inline u16 interrupted_call(struct cpu *cpu, u32 vec)
{
	struct thread *t = this_thread(cpu);
	struct task_struct *task;

	if (t)
		return call_here(t);
	task = bpf_get_current_task_btf();
	return vec == NET_RX && !(task->flags & PF_KTHREAD) ? saved_call(task) : NO_CALL;
}

static __always_inline bool is_inline(struct cpu *cpu, u32 vec, u64 now)
{
	u16 call;
	u32 kind;

	if (now - cpu->irq_end < AFTER_IRQ_NS)
		return false;
	call = interrupted_call(cpu, vec);
	if (call == NO_CALL)
		return false;
	kind = call_kinds[call & (CALLS_MAX - 1)];
	if (kind == CALL_READ || kind == CALL_RECEIVE)
		return vec == NET_RX;	/* it has made room, and says so */
	return kind == CALL_SEND || kind == CALL_WRITE || kind == CALL_CONNECT;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vec)
{
	struct cpu *cpu = this_cpu(PROG_SOFTIRQ);

	if (!cpu || stopped)
		return 0;
	cpu->in_softirq = 1;
	cpu->softirq_start = bpf_ktime_get_ns();
	cpu->softirq_inline = is_inline(cpu, vec, cpu->softirq_start);
	interrupted(cpu, cpu->softirq_start, false);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int vec)
{
	struct cpu *cpu = only_cpu(PROG_SOFTIRQ);
	u64 now;

	if (!cpu || stopped || !cpu->in_softirq)
		return 0;
	cpu->in_softirq = 0;
	now = bpf_ktime_get_ns();
	served(cpu, HIST_SOFTIRQ, vec, cpu->softirq_start, now);
	interrupted(cpu, now, false);
	return 0;
}

#define VECTOR(name, id)						\
SEC("tp_btf/" #name "_entry")						\
int BPF_PROG(on_##name##_entry, int vector)				\
{									\
	irq_begins(PROG_IRQ_VECTORS, id);				\
	return 0;							\
}									\
									\
SEC("tp_btf/" #name "_exit")						\
int BPF_PROG(on_##name##_exit, int vector)				\
{									\
	irq_ends(PROG_IRQ_VECTORS, id);					\
	return 0;							\
}

VECTOR(local_timer, VEC_LOCAL_TIMER)
VECTOR(reschedule, VEC_RESCHEDULE)
VECTOR(call_function, VEC_CALL_FUNCTION)
VECTOR(call_function_single, VEC_CALL_FUNCTION_SINGLE)
VECTOR(irq_work, VEC_IRQ_WORK)
