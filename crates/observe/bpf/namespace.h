/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Numbers of processes and threads as whylag's own PID namespace has them. All
 * that is recorded, asked for or looked up in /proc goes by these; the kernel's
 * own (task->pid) are those of the first namespace.
 *
 * What is not visible in that namespace has number 0 and no name: its number
 * would be that of some other process here.
 */
#ifndef WHYLAG_NAMESPACE_H
#define WHYLAG_NAMESPACE_H

#include "kernel.h"

/* whylag runs in a PID namespace below the first one. */
const volatile bool in_pid_namespace;

/* That one, and how deep it is; learn_namespace() sets them. */
u64 own_namespace;
u32 own_level;

/* MAX_PID_NS_LEVEL (kernel/pid_namespace.c). */
#define PID_LEVELS_MAX	32

static __always_inline u64 upid_at(struct pid *pid, u32 level)
{
	return (u64)pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

static __noinline u32 number_here(struct pid *pid)
{
	u32 level = own_level;
	struct upid *upid;

	if (!pid || level > PID_LEVELS_MAX || BPF_CORE_READ(pid, level) < level)
		return 0;
	upid = (void *)upid_at(pid, level);
	if ((u64)BPF_CORE_READ(upid, ns) != own_namespace)
		return 0;
	return BPF_CORE_READ(upid, nr);
}

static __always_inline u32 tid_of(struct task_struct *task)
{
	if (!in_pid_namespace)
		return task->pid;
	return number_here(BPF_CORE_READ(task, thread_pid));
}

static __always_inline u32 tgid_of(struct task_struct *task)
{
	if (!in_pid_namespace)
		return task->tgid;
	return number_here(BPF_CORE_READ(task, group_leader, thread_pid));
}

/* Names the task in `comm` if it is visible here, or an idle CPU. */
static __always_inline void name_task(char comm[16], struct task_struct *task,
				      u32 number)
{
	u64 *to = (void *)comm;

	if (in_pid_namespace && !number && task->pid) {
		__builtin_memcpy(comm, "unknown\0\0\0\0\0\0\0\0", 16);
		return;
	}
	/* By words: the verifier looks up the type of each load anew. */
	to[0] = *(u64 *)&task->comm[0];
	to[1] = *(u64 *)&task->comm[8];
}

/* Walked before anything is attached: the task that walks is whylag. */
SEC("iter/task")
int learn_namespace(struct bpf_iter__task *ctx)
{
	struct pid *pid = BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid);
	struct upid *upid;
	u32 level;

	if (own_namespace || !pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	upid = (void *)upid_at(pid, level);
	own_level = level;
	own_namespace = (u64)BPF_CORE_READ(upid, ns);
	return 0;
}

#endif
