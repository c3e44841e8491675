/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Whether a softirq is served, as the kernel counts it for itself (include/linux/preempt.h). Where the time
 * in softirqs is not taken, no program has to run at their begin and end, which on a busy server come
 * 100,000 times a second.
 */
#ifndef WHYLAG_SOFTIRQS_H
#define WHYLAG_SOFTIRQS_H

#include "unproven.h"

#define SOFTIRQ_OFFSET	(1 << 8)

/* In bytes, set by the loader; 0 if the kernel does not tell: then none is known to be served. */
const volatile s64 preempt_count_from_rq;

#if defined(__TARGET_ARCH_x86)
/*
 * It is a variable of the CPU, or was in one, struct pcpu_hot, from 6.2 to 6.14. Many kernels do not tell
 * a program where their variables are (no CONFIG_KALLSYMS_ALL); the CPU's run queue is another of them.
 */
static __always_inline u32 preempt_count(struct task_struct *task, u64 *known_at)
{
	u64 at = *known_at;
	struct kref *count;	/* any type of the kernel that begins with an integer */
	u32 copy = 0;

	if (!preempt_count_from_rq)
		return 0;
	if (!at) {
		at = (u64)task->se.cfs_rq->rq + preempt_count_from_rq;
		if (bpf_core_type_exists(struct pcpu_hot))
			at += bpf_core_field_offset(struct pcpu_hot, preempt_count);
		*known_at = at;
	}
	if (bpf_rdonly_cast) {
		count = bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct kref));
		return count->refcount.refs.counter;
	}
	bpf_probe_read_kernel(&copy, sizeof(copy), (void *)at);
	return copy;
}
#else
static __always_inline u32 preempt_count(struct task_struct *task, u64 *known_at)
{
	return task->thread_info.preempt_count;
}
#endif

/* `known_at` is this CPU's own, 0 at first. */
static __always_inline bool serves_softirq(u64 *known_at)
{
	struct task_struct *task = unproven(bpf_get_current_task_btf());

	if (bpf_core_field_exists(task->softirq_disable_cnt))	/* PREEMPT_RT */
		return task->softirq_disable_cnt & SOFTIRQ_OFFSET;
	return preempt_count(task, known_at) & SOFTIRQ_OFFSET;
}

#endif
