/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Timers while their functions run: a thread that is woken meanwhile was waiting for that timer,
 * whoever set it and however long ago. So nothing needs to be noted when timers are set.
 */
#include "threads.h"

static __always_inline void fires(struct timer *firing)
{
	firing->fired = bpf_ktime_get_ns();
	firing->was_idle = !bpf_get_current_task_btf()->pid;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_entry, struct hrtimer *timer)
{
	struct cpu *cpu = only_cpu(PROG_TIMERS);
	s64 offset;

	if (!cpu || stopped)
		return 0;
	offset = timer->base->offset;
	cpu->firing.softexpires = timer->_softexpires - offset;
	cpu->firing.expires = timer->node.expires - offset;
	cpu->firing.jiffies = 0;
	fires(&cpu->firing);
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(on_timer_entry, struct timer_list *timer)
{
	struct cpu *cpu = only_cpu(PROG_TIMERS);
	u64 late;

	if (!cpu || stopped)
		return 0;
	fires(&cpu->firing);
	late = bpf_jiffies64() - timer->expires;
	cpu->firing.softexpires = 0;
	/*
	 * The timer wheel adds one jiffy to all (calc_index() in kernel/time/timer.c). The time of
	 * a jiffy is not reported; its functions run early in it.
	 */
	cpu->firing.expires = cpu->firing.fired - (late ? late - 1 : 0) * jiffy_ns;
	cpu->firing.jiffies = 1;
	return 0;
}

static __always_inline void fired(void)
{
	struct cpu *cpu = only_cpu(PROG_TIMERS);

	if (cpu)
		cpu->firing.fired = 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_hrtimer_exit)
{
	fired();
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(on_timer_exit)
{
	fired();
	return 0;
}
