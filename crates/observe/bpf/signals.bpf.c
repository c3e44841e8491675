/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Signals sent to watched threads, and by whom.
 */
#include "threads.h"

struct kernel_siginfo;

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, struct kernel_siginfo *info,
	     struct task_struct *task)
{
	struct task_struct *sender = bpf_get_current_task_btf();
	struct who who;

	if (!only_cpu(PROG_SIGNAL_GENERATE) || stopped || !task ||
	    !thread_in(stored_slot_of(task)))
		return 0;
	set_who(&who, sender);
	send_event(EVENT_SIGNAL, tid_of(task), tgid_of(task), bpf_ktime_get_ns(),
		   sig, who.tid, who.comm);
	return 0;
}
