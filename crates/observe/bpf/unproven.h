/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Objects of the kernel of which the verifier does not have to prove anything.
 */
#ifndef WHYLAG_UNPROVEN_H
#define WHYLAG_UNPROVEN_H

#include "kernel.h"

extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym __weak;

/*
 * Of a task that the verifier trusts it looks at each load of a pointer whether that can be trusted, too:
 * three times through the names of all types of the kernel, which takes 1 ms
 * (btf_nested_type_is_trusted(), kernel/bpf/btf.c).
 */
static __always_inline struct task_struct *unproven(struct task_struct *task)
{
	if (!bpf_rdonly_cast)
		return task;
	return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
}

#endif
