/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What runs on the CPUs, sampled by a timer of each: the kernel offers no
 * other way here to see which of its functions take the time (no kprobes, no
 * tracepoint at the end of a page fault).
 */
#include "copies.h"
#include "threads.h"

struct bpf_perf_event_data;	/* only passed on */

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct cpu *cpu = this_cpu(PROG_CPU_CLOCK);
	struct path_key key = {};
	struct thread *t;

	if (!cpu)
		return 0;
	t = this_thread(cpu);
	if (!t || cpu->busy)
		return 0;	/* within one of our programs */
	key.tgid = t->tgid;
	key.tid = t->tid;
	key.call = call_here(t);
	/* The timer itself is a hard interrupt: what did it interrupt? */
	key.account = in_timed_softirq(cpu) ? ACCT_SOFTIRQ : base_account(t);
	key.sampled = 1;
	key.kernel = kernel_stack_here(ctx, cpu);
	key.user = user_stack_here(cpu, t->tgid);
	copy_sampled(key.user);
	if (!add_to_path(&key, sample_period_ns))
		return 0;
	/* Full: without the user side, and then without the thread, there are far fewer. */
	lost(LOSS_SAMPLE);
	key.user = 0;
	if (!add_to_path(&key, sample_period_ns))
		return 0;
	key.tid = 0;
	if (add_to_path(&key, sample_period_ns))
		lost(LOSS_PATH);
	return 0;
}
