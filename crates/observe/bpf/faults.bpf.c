/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Page faults: there is a tracepoint at their entry only, so the entry marks
 * the thread, and a sleep before the mark is cleared may be the fault's.
 */
#include "threads.h"

static __always_inline void fault_entered(u32 program, u64 address, u64 ip)
{
	struct cpu *cpu = this_cpu(program);
	struct thread *t;

	if (!cpu)
		return;
	t = this_thread(cpu);
	if (!t)
		return;
	t->fault = 1;
	t->fault_address = address;
	t->fault_ip = ip;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault_user, unsigned long address, struct pt_regs *regs)
{
	fault_entered(PROG_FAULT_USER, address, regs->ip);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long address, struct pt_regs *regs)
{
	fault_entered(PROG_FAULT_KERNEL, address, regs->ip);
	return 0;
}
