/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Sends that found no room: refused (EAGAIN, ENOBUFS), or asleep until there
 * was some. Counted by socket and descriptor; the recorder looks often.
 */
#ifndef WHYLAG_SENDS_H
#define WHYLAG_SENDS_H

#include "sleeps.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct send_key);
	__type(value, struct send_sum);
} send_sums SEC(".maps");

/* Those with a longer gap between them are of different bursts. */
#define SEND_GAP_NS	20000000

#define EAGAIN		11
#define ENOBUFS		105

static __always_inline void add_send(u32 tgid, u64 inode, u32 fd, u64 since,
				     u64 now, bool waited)
{
	struct send_key key = { .inode = inode, .tgid = tgid, .fd = fd };
	struct send_sum *sum = bpf_map_lookup_elem(&send_sums, &key);

	if (!sum) {
		struct send_sum first = {};

		if (bpf_map_update_elem(&send_sums, &key, &first, BPF_NOEXIST) == -7 /* E2BIG */)
			lost(LOSS_SEND);
		sum = bpf_map_lookup_elem(&send_sums, &key);
		if (!sum)
			return;
	}
	if (since > sum->last_ns + SEND_GAP_NS)
		sum->first_ns = since;
	sum->last_ns = now;
	if (waited) {
		__sync_fetch_and_add(&sum->waited, 1);
		__sync_fetch_and_add(&sum->waited_ns, now - since);
	} else {
		__sync_fetch_and_add(&sum->refused, 1);
	}
}

/* `task` slept in a send; it is about to run again. */
static __always_inline void send_waited(struct thread *t,
					struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	add_send(t->tgid, t->object, (u32)ARGUMENT_1(regs), t->off_since, t->wake_ns, true);
}

/* A call of the current thread fails; counted if it is a send for which there was no room. */
__noinline int send_refused(u32 tgid, u16 call, u32 error)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 kind = call_kinds[call & (CALLS_MAX - 1)], mode;
	struct pt_regs *regs;
	u64 inode, now;

	if (error != EAGAIN && error != ENOBUFS)
		return 0;
	if (kind != CALL_SEND && kind != CALL_WRITE)
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	inode = inode_of(file_here((u32)ARGUMENT_1(regs)), &mode);
	if ((mode & S_IFMT) != S_IFSOCK)
		return 0;
	now = bpf_ktime_get_ns();
	add_send(tgid, inode, (u32)ARGUMENT_1(regs), now, now, false);
	return 0;
}

#endif
