/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * System calls in short windows, where the programs of syscalls.bpf.c do not
 * run, or no more: the recorder attaches these for each window, so that
 * between windows no call costs anything. They change no account.
 *
 * Calls are counted where they end: how many end in a window does not depend
 * on how long they take. Of one that began before its window only the part
 * within is known (a censored value).
 */
#include "threads.h"

/* Where a call is counted. One of its two slots remembers that, unless both are in use for the sums of others. */
static __always_inline u32 sampled_hist(struct thread *t, u16 call)
{
	struct call_sum *slot = &t->calls[first_slot(call)];

	if ((slot->used || slot->sampled_hist) && slot->nr != call)
		slot = &t->calls[second_slot(call)];
	if (slot->used && slot->nr != call)
		return hist_slot(t->tgid, HIST_SAMPLED_SYSCALL, call);
	if (!slot->sampled_hist || slot->nr != call) {
		slot->nr = call;
		slot->sampled_hist = hist_slot(t->tgid, HIST_SAMPLED_SYSCALL, call);
	}
	return slot->sampled_hist;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sampled_enter, struct pt_regs *regs, long id)
{
	struct cpu *cpu = this_cpu(PROG_SYS_ENTER);
	struct thread *t;

	if (!cpu || !call_window_since)
		return 0;
	t = this_thread(cpu);
	if (t)
		t->call_seen = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sampled_exit, struct pt_regs *regs, long ret)
{
	struct cpu *cpu = this_cpu(PROG_SYS_EXIT);
	u64 since = call_window_since, now, began;
	struct thread *t;
	u16 call;

	if (!cpu || !since)
		return 0;
	t = this_thread(cpu);
	if (!t)
		return 0;
	began = t->call_seen;
	t->call_seen = 0;
	call = current_call();
	/* A thread that was born in the window comes out of the call that its parent made. */
	if (call == NO_CALL || (!began && t->first_ns >= since))
		return 0;
	now = bpf_ktime_get_ns();
	if (began >= since)
		count_here(sampled_hist(t, call), now - began);
	else
		hist_count(hist_slot(t->tgid, HIST_CENSORED_SYSCALL, call), now - since);
	return 0;
}
