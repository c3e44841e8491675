/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What a thread that goes to sleep waits for, and on which object.
 */
#ifndef WHYLAG_SLEEPS_H
#define WHYLAG_SLEEPS_H

#include "state.h"
#include "stacks.h"
#include "futexes.h"
#include "pairs.h"

/* The six arguments of a task's call. */
static __always_inline void call_arguments(struct task_struct *task, u64 *args)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	args[0] = ARGUMENT_1(regs);
	args[1] = ARGUMENT_2(regs);
	args[2] = ARGUMENT_3(regs);
	args[3] = ARGUMENT_4(regs);
	args[4] = ARGUMENT_5(regs);
	args[5] = ARGUMENT_6(regs);
}

/* An open file. */
static __always_inline struct file *file_of_fd(struct task_struct *task, u32 fd)
{
	struct fdtable *table = unproven(task)->files->fdt;
	struct file **slot = table->fd, *file = NULL;
	struct list_head *pointer;

	if (!slot || fd >= table->max_fds)
		return NULL;
	if (!bpf_rdonly_cast) {
		bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
		return file;
	}
	/* Any kernel type that begins with a pointer: that is loaded at once, and 0 where it cannot be. */
	pointer = bpf_rdonly_cast(slot + fd, bpf_core_type_id_kernel(struct list_head));
	return (struct file *)pointer->next;
}

static __always_inline struct file *file_here(u32 fd)
{
	return file_of_fd(bpf_get_current_task_btf(), fd);
}

/* Else it is met by a walk, asleep: what is in its memory cannot be read. */
static __always_inline bool is_current(struct task_struct *task)
{
	return task == bpf_get_current_task_btf();
}

/* Its inode number and mode, 0 if there is none. */
static __always_inline u64 inode_of(struct file *file, u32 *mode)
{
	struct inode *inode;

	*mode = 0;
	if (!file)
		return 0;
	if (!bpf_rdonly_cast) {
		*mode = BPF_CORE_READ(file, f_inode, i_mode);
		return BPF_CORE_READ(file, f_inode, i_ino);
	}
	file = bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file));
	inode = file->f_inode;
	*mode = inode->i_mode;
	return inode->i_ino;
}

/* A file without a name: eventfd, signalfd, epoll, timerfd ...? */
static __always_inline bool is_anonymous(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC;
}

#define FUSE_SUPER_MAGIC	0x65735546

/* A file that a program of this host serves. */
static __always_inline bool is_fuse(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_sb, s_magic) == FUSE_SUPER_MAGIC;
}

/* Objects that have no inode of their own, beside sets of semaphores: which kind, and a number. */
#define OBJECT_SEMAPHORES	(1ULL << 32)
#define OBJECT_EVENTFD		(1ULL << 61)
#define OBJECT_SIGNALS		(1ULL << 62)
/* Of a write: a terminal, or another device that takes what is written bit by bit. */
#define OBJECT_TERMINAL		(1ULL << 62)
#define OBJECT_MESSAGES		(1ULL << 63)

static __always_inline u64 eventfd_object(struct file *file)
{
	struct eventfd_ctx *ctx = (void *)BPF_CORE_READ(file, private_data);

	if (!bpf_core_field_exists(struct eventfd_ctx, id))
		return 0;
	return OBJECT_EVENTFD | (u32)BPF_CORE_READ(ctx, id);
}

/* What a thread waits for that reads a file without a name, and its object. */
static __always_inline u32 anonymous_account(struct thread *t, struct file *file, u32 otherwise)
{
	char name[8] = {};

	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	t->object = 0;	/* they share one inode */
	if (!__builtin_memcmp(name, "[eventf", sizeof(name)))
		t->object = eventfd_object(file);
	return !__builtin_memcmp(name, "[timerf", sizeof(name)) ? ACCT_TIMER : otherwise;
}

/*
 * Who opened the connection asks, and who accepted it answers; the thread of a server waits for
 * the next request after each answer just as the client waits for the answer. Of connections that
 * are older than the recording the ports tell, as a rule.
 */
struct role_key {
	u32 tgid, fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct role_key);
	__type(value, u32);
} roles SEC(".maps");

/* The descriptor `fd` of the process has been connected or accepted. */
__noinline int note_role(u32 tgid, u32 fd, u32 role)
{
	struct role_key key = { .tgid = tgid, .fd = fd };

	bpf_map_update_elem(&roles, &key, &role, BPF_ANY);
	return 0;
}

static __always_inline struct sock *sock_of(struct file *file)
{
	struct socket *socket = (void *)BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk);
}

static __always_inline bool is_clients(struct thread *t, struct file *file, u32 fd)
{
	struct role_key key = { .tgid = t->tgid, .fd = fd };
	u32 *role = bpf_map_lookup_elem(&roles, &key);
	struct sock *sk = sock_of(file);
	u16 family, local, remote;

	if (role)
		return *role == ROLE_CLIENT;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == AF_UNIX)	/* an accepted socket has the name of the one that listens */
		return !BPF_CORE_READ((struct unix_sock *)sk, addr);
	if (family != AF_INET && family != AF_INET6)
		return false;
	local = BPF_CORE_READ(sk, __sk_common.skc_num);
	remote = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	/* Packets may be sent without a peer. */
	return local >= EPHEMERAL_PORT && remote < EPHEMERAL_PORT;
}

#define SENT_TO_INODE	(1U << 31)

static __always_inline u32 sent_to_inode(u64 inode)
{
	return (u32)inode | SENT_TO_INODE;
}

/*
 * Whether a thread has sent something there last, and read nothing since. The programs of calls keep the
 * descriptor, plus 1. Without them those of requests keep the inode, of sockets alone.
 */
static __always_inline bool has_sent(struct thread *t, u64 inode, u32 fd)
{
	return t->sent_to == (calls_off ? sent_to_inode(inode) : fd + 1);
}

/* Notes whether a thread that waits for `fd` waits for the answer to what it has sent there. */
static __always_inline void note_asked(struct thread *t, struct file *file, u32 fd)
{
	u32 mode;
	u64 inode = inode_of(file, &mode);
	bool sent = has_sent(t, inode, fd);

	if ((mode & S_IFMT) != S_IFSOCK || (!sent && t->work_at == inode))
		return;
	switch (pair_waits(sock_of(file), inode, sent, t->work_at)) {
	case NO_PAIR:
		t->asked = sent && is_clients(t, file, fd);
		break;
	case PAIR_ASKS:
		t->asked = sent;
	}
}

/*
 * The current thread waits for a pipe, `fd`: the other pipe that it has written to, if that was the last that it sent
 * (as in struct thread); else 0. Whether it waits for an answer shows when it is woken: see is_answer_of_child().
 * Not static, as hold_class.
 */
__noinline u64 pipe_sent_to(u32 sent_to, u32 fd)
{
	u32 mode;
	u64 inode;

	if (calls_off || !sent_to || sent_to == fd + 1)
		return 0;
	inode = inode_of(file_here(sent_to - 1), &mode);
	return (mode & S_IFMT) == S_IFIFO ? inode : 0;
}

/* read or write: pipe, socket, file or something else. */
static __always_inline u32 file_account(struct thread *t, struct task_struct *task, u32 fd, bool write,
					u32 otherwise)
{
	struct file *file = file_of_fd(task, fd);
	u32 mode;

	if (!write)
		note_asked(t, file, fd);
	t->object = inode_of(file, &mode);
	switch (mode & S_IFMT) {
	case S_IFIFO:
		if (write)
			return ACCT_PIPE_WRITE;
		t->sent_pipe = is_current(task) ? pipe_sent_to(t->sent_to, fd) : 0;
		return ACCT_PIPE_READ;
	case S_IFSOCK:
		return write ? ACCT_SOCKET_SEND : ACCT_SOCKET_RECEIVE;
	case S_IFCHR:
		if (!write || otherwise != ACCT_OTHER)
			break;
		t->object |= OBJECT_TERMINAL;
		return ACCT_PIPE_WRITE;
	}
	if (file && is_anonymous(file))
		return anonymous_account(t, file, otherwise);
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFBLK:
		if (otherwise != ACCT_OTHER || is_fuse(file))
			return ACCT_DISK;
		/* Who sleeps so that a signal ends it waits for what others write: /proc/kmsg, trace_pipe. */
		t->object = 0;
	}
	return otherwise;
}

#define TCP_SYN_SENT	2

/*
 * What poll or ppoll waits for if that is one descriptor; with several nobody knows which. A connect
 * with a time limit (Python's, libcurl's) waits so until there is a connection.
 */
static __always_inline u32 poll_account(struct thread *t, struct task_struct *task,
					struct pt_regs *regs)
{
	struct file *file;
	u32 fd, mode;

	t->object = 0;
	if (!IS_POLL(t->call) || ARGUMENT_2(regs) != 1 || !is_current(task))
		return ACCT_POLL;
	if (bpf_probe_read_user(&fd, sizeof(fd), (void *)ARGUMENT_1(regs)))
		return ACCT_POLL;
	file = file_of_fd(task, fd);
	note_asked(t, file, fd);
	t->object = inode_of(file, &mode);
	if ((mode & S_IFMT) == S_IFSOCK &&
	    BPF_CORE_READ(sock_of(file), __sk_common.skc_state) == TCP_SYN_SENT)
		return ACCT_SOCKET_CONNECT;
	return ACCT_POLL;
}

/*
 * poll or select of no descriptor, for a time: so sleep Ruby, Perl and others. For poll -1 is no
 * time, for the others NULL.
 */
static __always_inline bool polls_nothing(struct thread *t, struct pt_regs *regs)
{
	if (IS_POLL(t->call))
		return !ARGUMENT_2(regs) && ARGUMENT_3(regs) && (u32)ARGUMENT_3(regs) != ~0U;
	return IS_SELECT(t->call) && !ARGUMENT_1(regs) && ARGUMENT_5(regs);
}

/* Its call waits for requests, which may be of the disk, of sockets or anything. */
static __always_inline bool awaits_completion(struct thread *t)
{
	return call_kinds[t->call & (CALLS_MAX - 1)] == CALL_COMPLETION;
}

/* What a call that sleeps waits for. */
static __always_inline u32 call_account(struct thread *t,
					struct task_struct *task, u32 otherwise)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u32 fd = (u32)ARGUMENT_1(regs), second = (u32)ARGUMENT_2(regs), mode;
	struct file *file;

	switch (call_kinds[t->call & (CALLS_MAX - 1)]) {
	case CALL_FUTEX:
		t->object = ARGUMENT_1(regs);
		t->lock_like = is_lock_wait(second, t->object, (u32)ARGUMENT_3(regs),
					    STACK_TOP(regs), is_current(task));
		t->owner = t->lock_like && is_current(task) ?
			   lock_owner(t->object, second, (u32)ARGUMENT_3(regs)) : 0;
		return ACCT_FUTEX;
	case CALL_POLL:
		if (polls_nothing(t, regs))
			return ACCT_TIMER;
		return poll_account(t, task, regs);
	case CALL_COMPLETION:
		return ACCT_POLL;	/* unless the disk ends it */
	case CALL_TIMER:
		return ACCT_TIMER;
	case CALL_CHILD:
		return ACCT_CHILD;
	case CALL_ACCEPT:
		return ACCT_SOCKET_ACCEPT;
	case CALL_CONNECT:
		return ACCT_SOCKET_CONNECT;
	case CALL_RECEIVE:
		file = file_of_fd(task, fd);
		note_asked(t, file, fd);
		t->object = inode_of(file, &mode);
		return ACCT_SOCKET_RECEIVE;
	case CALL_SEND:
		t->object = inode_of(file_of_fd(task, fd), &mode);
		return ACCT_SOCKET_SEND;
	case CALL_FILE_LOCK:
		t->object = inode_of(file_of_fd(task, fd), &mode);
		return ACCT_FILE_LOCK;
	case CALL_FCNTL:
		if (second != F_SETLKW && second != F_OFD_SETLKW)
			return otherwise;
		t->object = inode_of(file_of_fd(task, fd), &mode);
		return ACCT_FILE_LOCK;
	case CALL_READ:
		return file_account(t, task, fd, false, otherwise);
	case CALL_WRITE:
		return file_account(t, task, fd, true, otherwise);
	case CALL_DISK:
		return ACCT_DISK;
	case CALL_SEMAPHORES:
		t->object = OBJECT_SEMAPHORES | fd;
		return otherwise;
	case CALL_MESSAGES:	/* of one type */
		t->object = OBJECT_MESSAGES | (ARGUMENT_4(regs) & 0x3fffffff) << 32 | fd;
		return otherwise;
	case CALL_SIGNALS:
		t->object = OBJECT_SIGNALS | t->tid;
		return otherwise;
	}
	return otherwise;
}

/* How deep a page fault is looked for in a kernel stack. */
#define FAULT_FRAMES	48

/* True if one of the first `bytes` of cpu->stack is in handle_mm_fault. Not static, as hold_class. */
__noinline int has_fault_frame(struct cpu *cpu, long bytes)
{
	u32 i;

	if (!cpu)
		return 0;
	for (i = 0; i < FAULT_FRAMES; i++) {
		u64 ip = cpu->stack.frames[i];

		if ((long)(i * sizeof(u64)) >= bytes)
			break;
		if (ip >= handle_mm_fault_text[0] && ip < handle_mm_fault_text[1])
			return 1;
	}
	return 0;
}

/* True if the kernel stack of the current task passes handle_mm_fault. */
static __always_inline bool sleeps_in_fault(void *ctx, struct cpu *cpu)
{
	return has_fault_frame(cpu, bpf_get_stack(ctx, cpu->stack.frames,
						  FAULT_FRAMES * sizeof(u64), 0));
}

int mm_wait_begins(u64 now);

/*
 * The mmap_lock that a thread is taking, where no contention_begin tells: between the tracepoints
 * around it nothing else lets a thread sleep.
 */
static __always_inline u32 mmap_lock_account(struct thread *t)
{
	if (!t->mm_wait_start) {
		t->mm_slept = 1;
		mm_wait_begins(bpf_ktime_get_ns());
	}
	t->object = t->mm_write ? LOCK_CLASS_MMAP_WRITE : LOCK_CLASS_MMAP_READ;
	return t->mm_write ? ACCT_MMAP_LOCK_WRITE : ACCT_MMAP_LOCK_READ;
}

/* Account of a thread that goes to sleep in `state`. */
static __always_inline u32 sleep_account(void *ctx, struct cpu *cpu,
					 struct thread *t,
					 struct task_struct *task, u32 state)
{
	bool disk = BPF_CORE_READ_BITFIELD(task, in_iowait);
	bool idle = (state & TASK_INTERRUPTIBLE) || (state & TASK_NOLOAD);
	u32 otherwise = idle ? ACCT_OTHER : ACCT_UNINTERRUPTIBLE;

	if (t->lock) {
		t->object = t->lock_class;
		return t->lock_account;
	}
	if (locks_off && t->mm_waited)
		return mmap_lock_account(t);
	if (t->dirty_pause)
		return ACCT_DIRTY_THROTTLE;
	if (t->fault && !(state & TASK_INTERRUPTIBLE) &&
	    (t->call == NO_CALL || sleeps_in_fault(ctx, cpu))) {
		t->object = t->fault_address >> 21 << 21;
		return disk ? ACCT_FAULT_MAJOR : ACCT_FAULT_MINOR;
	}
	if (t->call == NO_CALL)
		return disk ? ACCT_DISK : otherwise;
	/* io_uring sets in_iowait for any request, and libaio for none. */
	if (disk && !(idle && awaits_completion(t)))
		return ACCT_DISK;
	return call_account(t, task, otherwise);
}

/*
 * A sleeper that waits for requests of any kind is woken. If a block request ends in this
 * interrupt, or in the kernel's worker that finishes what such an interrupt began, it waited for
 * the disk since that was issued.
 */
static __always_inline void completion_wakes(struct cpu *cpu, struct thread *t,
					     struct task_struct *waker)
{
	/* A softirq of which nothing is known follows the interrupt that raised it. */
	u64 began = cpu->in_hardirq || softirqs_off ? cpu->irq_start : cpu->softirq_start;

	if (t->open != ACCT_POLL || !awaits_completion(t))
		return;
	if (t->waker_context == CTX_TASK)
		began = waker->flags & PF_WQ_WORKER ? t->off_since : ~0ULL;
	if (cpu->io_done < began)
		return;
	if ((s64)(cpu->io_issued - t->off_since) > 0) {
		charge(cpu, t, cpu->io_issued);
		t->off_since = cpu->io_issued;
	}
	t->open = t->off_account = ACCT_DISK;
}

#endif
