/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What is kept at each socket of a watched process for the walk that reads its
 * queues.
 */
#ifndef WHYLAG_SOCKET_NOTES_H
#define WHYLAG_SOCKET_NOTES_H

#include "state.h"

struct socket_note {
	u32 tgid, fd;
	u64 inode;
	u64 drops_before;	/* of the kernel's count, before the recording */
	u64 drops;		/* reported by kfree_skb */
	u64 drop_first;		/* since the last walk */
	u64 drop_last;
	u32 drop_reason;
	u32 resent;		/* as in queue_record */
	u64 timeouts;
	u64 timeout_at;
	u64 timeout_after;
	u32 connecting;
	u32 pad;
	u64 walk;		/* the last over files that gave its queues */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_note);
} socket_notes SEC(".maps");

/* The note of a socket that has none yet; NULL if it has one, or there is no memory. */
static __always_inline struct socket_note *new_note(struct sock *sk)
{
	if (bpf_sk_storage_get(&socket_notes, sk, 0, 0))
		return NULL;
	return bpf_sk_storage_get(&socket_notes, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/*
 * A watched thread sends for the first time on a socket that it asks on: a
 * look-up of a name has one of its own, which lasts no longer than the answer
 * takes. Its descriptor is the first argument of the call. What is sent
 * without such a call is found by the walk over the files.
 */
static __noinline int note_asking(struct sock *sk, u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 call = saved_call(task), kind;
	struct socket_note *note;

	if (call == NO_CALL)
		return 0;
	kind = call_kinds[call & (CALLS_MAX - 1)];
	if (kind != CALL_SEND && kind != CALL_WRITE)
		return 0;
	note = new_note(sk);
	if (!note)
		return 0;
	note->tgid = tgid;
	note->fd = (u32)ARGUMENT_1((struct pt_regs *)bpf_task_pt_regs(task));
	note->inode = inode_of_sock(sk);
	return 0;
}

#endif
