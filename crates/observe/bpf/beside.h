/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Who was inside the kernel on the other CPUs when a wait for a spinlock
 * ended. A spinlock does not record its holder, but its holder is on a CPU.
 */
#ifndef WHYLAG_BESIDE_H
#define WHYLAG_BESIDE_H

#include "sleeps.h"

#define CPUS_MAX		1024
#define AF_NETLINK		16
#define NETLINK_SOCK_DIAG	4

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct beside_key);
	__type(value, struct beside_sum);
} beside_sums SEC(".maps");

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

struct spin_wait {
	u64 ns, like;		/* how long it was, for how much it stands */
	u64 kernel;
	u32 tgid;
	u32 here;
};

static __always_inline bool is_sock_diag(struct file *file)
{
	struct socket *socket = (void *)BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	return BPF_CORE_READ(sk, __sk_common.skc_family) == AF_NETLINK &&
	       BPF_CORE_READ(sk, sk_protocol) == NETLINK_SOCK_DIAG;
}

/* What the task reads: a file of /proc with its folder, or the socket tables. */
static __always_inline u32 what_is_read(struct task_struct *task, u16 call,
					u32 fd, struct beside_sum *sum)
{
	u32 kind = call_kinds[call & (CALLS_MAX - 1)], mode;
	struct dentry *dentry;
	struct file *file;

	if (kind != CALL_READ && kind != CALL_RECEIVE && kind != CALL_SEND &&
	    call != CALL_NR_GETDENTS64)
		return BESIDE_OTHER;
	file = file_of_fd(task, fd);
	if (!file)
		return BESIDE_OTHER;
	inode_of(file, &mode);
	if ((mode & S_IFMT) == S_IFSOCK)
		return is_sock_diag(file) ? BESIDE_SOCK_DIAG : BESIDE_OTHER;
	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != PROC_FS_MAGIC)
		return BESIDE_OTHER;
	dentry = BPF_CORE_READ(file, f_path.dentry);
	bpf_probe_read_kernel_str(sum->name, sizeof(sum->name),
				  BPF_CORE_READ(dentry, d_name.name));
	bpf_probe_read_kernel_str(sum->folder, sizeof(sum->folder),
				  BPF_CORE_READ(dentry, d_parent, d_name.name));
	return BESIDE_PROC_FILE;
}

static __always_inline void add_possible_holder(struct task_struct *task,
						struct spin_wait *wait)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct beside_key key = {
		.tgid = wait->tgid,
		.other_tgid = tgid_of(task),
		.kernel = wait->kernel,
	};
	struct beside_sum first = {}, *sum;
	u16 nr = saved_call(task);

	if (task->flags & PF_KTHREAD || nr == NO_CALL)
		return;
	key.call = nr;
	key.kind = what_is_read(task, nr, (u32)ARGUMENT_1(regs), &first);
	sum = bpf_map_lookup_elem(&beside_sums, &key);
	if (!sum) {
		name_task(first.comm, task, key.other_tgid);
		bpf_map_update_elem(&beside_sums, &key, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&beside_sums, &key);
		if (!sum) {
			lost(LOSS_BESIDE);
			return;
		}
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->ns, wait->like);
	if (wait->ns > sum->max_ns)
		sum->max_ns = wait->ns;
}

static long look_at_cpu(u32 i, struct spin_wait *wait)
{
	u32 zero = 0;
	struct task_struct *task, *current;
	struct cpu *cpu;
	s32 pid = 0;

	if (i == wait->here)
		return 0;
	cpu = bpf_map_lookup_percpu_elem(&cpus, &zero, i);
	if (!cpu)
		return 1;
	current = (void *)cpu->task;
	if (current)
		pid = BPF_CORE_READ(current, pid);
	if (pid <= 0)
		return 0;
	task = bpf_task_from_pid(pid);
	if (!task)
		return 0;
	add_possible_holder(task, wait);
	bpf_task_release(task);
	return 0;
}

/* The current thread waited for a spinlock until now, and has it: somebody else may wait for it already. */
static __noinline int spun(u32 tgid, u64 kernel, u64 ns, u64 like)
{
	struct spin_wait wait = { .ns = ns, .like = like, .tgid = tgid, .kernel = kernel };

	wait.here = bpf_get_smp_processor_id();
	if (bpf_task_from_pid && bpf_task_release)
		bpf_loop(CPUS_MAX, look_at_cpu, &wait, 0);
	return 0;
}

#endif
