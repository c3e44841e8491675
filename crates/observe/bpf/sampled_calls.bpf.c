/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * System calls in short windows, for recordings without those of
 * syscalls.bpf.c: the recorder attaches these programs for each window, so
 * that between windows no call costs anything. They change no account.
 *
 * Calls are counted where they end: how many end in a window does not depend
 * on how long they take. Of one that began before its window only the part
 * within is known (a censored value).
 */
#include "threads.h"

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
	u64 since = call_window_since, began;
	struct thread *t;
	u32 kind;
	u16 call;

	if (!cpu || !since)
		return 0;
	t = this_thread(cpu);
	if (!t)
		return 0;
	began = t->call_seen;
	t->call_seen = 0;
	call = current_call();
	if (began == CALL_OF_PARENT || call == NO_CALL)
		return 0;
	kind = HIST_SAMPLED_SYSCALL;
	if (began < since) {
		kind = HIST_CENSORED_SYSCALL;
		began = since;
	}
	hist_count(hist_slot(t->tgid, kind, call), bpf_ktime_get_ns() - began);
	return 0;
}
