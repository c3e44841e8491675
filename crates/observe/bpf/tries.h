/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * A call that is refused, a sleep that the thread chose, and the same call
 * again: so a thread waits for what the call wants, and no account shows it.
 */
#ifndef WHYLAG_TRIES_H
#define WHYLAG_TRIES_H

#include "sleeps.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct retry_key);
	__type(value, struct retry_sum);
} retry_sums SEC(".maps");

#define EBUSY	16
#define EACCES	13

#define FLOCK_UNLOCK	8
#define FCNTL_SETLK	6
#define FCNTL_OFD_SETLK	37
#define FCNTL_UNLCK	2

/* Other calls between two tries, at most: a line of a log, say. */
#define TRY_OTHERS	4

/* What a call of the current thread asks for: the inode behind its descriptor, or its first argument. */
static __always_inline u64 asked_for(u32 kind, u32 *mode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	*mode = 0;
	switch (kind) {
	case CALL_FILE_LOCK:
	case CALL_FCNTL:
	case CALL_SEND:
	case CALL_WRITE:
		return inode_of(file_of_fd(task, (u32)ARGUMENT_1(regs)), mode);
	}
	return ARGUMENT_1(regs);
}

/* Refused where another has what is wanted; who finds nothing to read waits for work. */
static __always_inline bool is_refusal(u32 kind, u32 error)
{
	const u64 kinds = 1 << CALL_OTHER | 1 << CALL_SEND | 1 << CALL_WRITE |
			  1 << CALL_FILE_LOCK | 1 << CALL_FCNTL;

	if (error == EACCES)
		return kind == CALL_FCNTL;
	return (error == EAGAIN || error == EBUSY) && (kinds >> (kind & 63) & 1);
}

/* A call of the current thread failed. */
static __noinline int try_fails(u16 call, u32 error)
{
	u32 kind = call_kinds[call & (CALLS_MAX - 1)];
	struct thread *t = current_thread();
	u32 mode;

	if (!t || !is_refusal(kind, error))
		return 0;
	t->try_call = call;
	t->try_error = error;
	t->try_object = asked_for(kind, &mode);
	t->try_pipe = (mode & S_IFMT) == S_IFIFO;
	t->try_slept = t->try_others = 0;
	return 0;
}

static __always_inline void add_retry(struct thread *t)
{
	struct retry_key key = {
		.object = t->try_object,
		.tgid = t->tgid,
		.call = t->try_call,
		.error = t->try_error,
		.pipe = t->try_pipe,
	};
	struct retry_sum *sum = bpf_map_lookup_elem(&retry_sums, &key);

	if (!sum) {
		struct retry_sum first = {};

		if (bpf_map_update_elem(&retry_sums, &key, &first, BPF_NOEXIST) == -7 /* E2BIG */)
			lost(LOSS_RETRY);
		sum = bpf_map_lookup_elem(&retry_sums, &key);
		if (!sum)
			return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->ns, t->try_slept);
	if (t->try_slept > sum->max_ns)
		sum->max_ns = t->try_slept;
}

/*
 * The current thread lets go of a lock: by the call that asks for one, but not for it. Who is refused
 * one lock lets go of the others before it sleeps.
 */
static __always_inline bool lets_go(u32 kind)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 command = ARGUMENT_2(regs);
	u16 type; /* the first member of struct flock */

	if (kind == CALL_FILE_LOCK)
		return command & FLOCK_UNLOCK;
	if (kind != CALL_FCNTL || (command != FCNTL_SETLK && command != FCNTL_OFD_SETLK))
		return false;
	return !bpf_probe_read_user(&type, sizeof(type), (void *)ARGUMENT_3(regs)) &&
	       type == FCNTL_UNLCK;
}

/* The current thread, of which a call was refused, begins another. */
static __noinline int step_of_try(u32 kind, u16 nr)
{
	struct thread *t = current_thread();
	u32 mode;

	if (!t || kind == CALL_TIMER)
		return 0;
	if (nr == t->try_call && asked_for(kind, &mode) == t->try_object &&
	    (t->try_slept || !lets_go(kind))) {
		if (t->try_slept)
			add_retry(t);
		t->try_error = 0;
	} else if (++t->try_others > TRY_OTHERS) {
		t->try_error = 0;
	}
	return 0;
}

#endif
