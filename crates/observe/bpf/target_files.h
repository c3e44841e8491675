/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* What walks over the open files of tasks need to find the sockets of the target. */
#ifndef WHYLAG_TARGET_FILES_H
#define WHYLAG_TARGET_FILES_H

#include "threads.h"

/*
 * Descriptors belong to all threads of a process, and the walk gives them
 * with its leader: that one need not be the thread that is watched.
 */
static __always_inline bool may_have_ours(struct task_struct *task)
{
	if (target_kind == TARGET_THREAD)
		return tgid_of(task) == target_tgid;
	return thread_of(task);
}

/* One that helpers take, unlike that of sock_of(); NULL if it is no socket. */
static __always_inline struct sock *sock_from(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

/* The socket of a file of the target; NULL if it is none of one. */
static __always_inline struct sock *sock_of_target(struct task_struct *task, struct file *file)
{
	return task && file && may_have_ours(task) ? sock_from(file) : NULL;
}

#endif
