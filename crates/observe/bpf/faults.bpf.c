/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Page faults: there is a tracepoint at their entry only, so the entry marks
 * the thread, and a sleep before the mark is cleared may be the fault's.
 */
#include "threads.h"

static __always_inline struct thread *fault_entered(struct cpu *cpu, u64 address,
						   u64 ip)
{
	struct thread *t = cpu ? this_thread(cpu) : NULL;

	if (!t)
		return NULL;
	t->fault = 1;
	t->fault_address = address;
	t->fault_ip = ip;
	return t;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault_user, unsigned long address, struct pt_regs *regs)
{
	struct cpu *cpu = this_cpu(PROG_PAGE_FAULT_USER);
	struct thread *t = fault_entered(cpu, address, INSTRUCTION(regs));
	bool linking;

	if (!t)
		return 0;
	linking = in_linker(t, INSTRUCTION(regs));
	if (!linking)
		t->starting = 0;
	else if (t->starting || no_stacks)
		return 0;
	if ((linking || t->binding) && enter(cpu)) {
		step_of_binding(INSTRUCTION(regs), STACK_TOP(regs));
		leave(cpu);
	}
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long address, struct pt_regs *regs)
{
	fault_entered(this_cpu(PROG_PAGE_FAULT_KERNEL), address, INSTRUCTION(regs));
	return 0;
}
