/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The kernel types the recorder reads, each with just the fields used.
 *
 * preserve_access_index makes every access a CO-RE relocation: the loader
 * looks the field up by name in the running kernel's BTF, so neither the
 * order nor the size of these mirrors has to match.
 */
#ifndef WHYLAG_KERNEL_H
#define WHYLAG_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false, true };

/* From the kernel's ABI header linux/bpf.h. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };
enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_USER_STACK = 1 << 8,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* Bits of task_struct.__state (include/linux/sched.h). */
#define TASK_INTERRUPTIBLE	0x0001
#define TASK_UNINTERRUPTIBLE	0x0002
#define TASK_STOPPED_BIT	0x0004
#define TASK_TRACED_BIT		0x0008
#define TASK_DEAD		0x0080
#define TASK_NOLOAD		0x0400
#define TASK_FROZEN		0x8000
#define JOBCTL_TRAP_FREEZE	(1UL << 23)	/* include/linux/sched/jobctl.h */
#define PF_EXITING		0x00000004
#define PF_WQ_WORKER		0x00000020
#define PF_MEMALLOC		0x00000800
#define PF_KTHREAD		0x00200000

/* Bits of contention_begin's flags (include/trace/events/lock.h). */
#define LCB_F_SPIN	(1 << 0)
#define LCB_F_READ	(1 << 1)
#define LCB_F_WRITE	(1 << 2)
#define LCB_F_RT	(1 << 3)
#define LCB_F_PERCPU	(1 << 4)
#define LCB_F_MUTEX	(1 << 5)

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct kref {
	refcount_t refcount;
};

struct rw_semaphore {
	void *owner;
};

struct signal_struct {
	atomic_t live;		/* threads that have not exited */
	unsigned int flags;
};

struct hlist_node;

struct hlist_head {
	struct hlist_node *first;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
	u32 i_rdev;
	unsigned int i_nlink;
	atomic_t i_count;
	s64 i_size;
	struct hlist_head i_dentry;
	struct super_block *i_sb;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_head d_alias;	/* as long as a node */
	} d_u;
};

struct address_space {
	struct inode *host;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};

/* Before 5.16. */
struct page {
	struct address_space *mapping;
	unsigned long index;
};

enum pageflags {
	PG_head = 6,
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct mm_struct {
	struct rw_semaphore mmap_lock;
	unsigned long saved_auxv[1];
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct rq {
	u64 prev_steal_time;
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
	u64 throttled_clock_pelt_time;
	u64 throttled_clock_task_time;	/* the same, before 5.19 */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct list_head {
	struct list_head *next;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct list_head cgrp_links;
};

struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* One number for each namespace that it is visible in, the first one's first. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct thread_info {
	u32 status;		/* x86 */
	unsigned long flags;
	u64 preempt_count;	/* arm64, its lower half */
};

struct pcpu_hot {		/* x86 */
	int preempt_count;
};

struct thread_struct {
	unsigned long fsbase;	/* x86 */
};

struct cpumask {
	unsigned long bits[1];
};

struct task_struct {
	struct thread_info thread_info;
	struct thread_struct thread;
	unsigned int __state;
	unsigned int flags;
	unsigned long jobctl;
	int on_cpu;
	struct sched_entity se;
	bool throttled;
	int prio;
	struct cpumask cpus_mask;
	struct mm_struct *mm;
	struct mm_struct *active_mm;
	struct signal_struct *signal;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u32 pid;
	u32 tgid;
	struct pid *thread_pid;
	u64 start_time;
	struct css_set *cgroups;
	int exit_code;
	unsigned in_iowait : 1;
	unsigned long min_flt;
	unsigned long maj_flt;
	const struct cred *cred;
	char comm[16];
	struct files_struct *files;
	void *bpf_storage;
	int softirq_disable_cnt;
};

#include "arch.h"

struct linux_binprm {
	const char *filename;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
};

struct irqaction {
	unsigned int irq;
};

struct transaction_run_stats_s {
	unsigned long rs_running;
	unsigned long rs_flushing;
	unsigned long rs_logging;
};

struct timerqueue_node {
	s64 expires;
};

struct hrtimer_clock_base {
	s64 offset;		/* of its clock to CLOCK_MONOTONIC */
};

struct hrtimer {
	struct timerqueue_node node;
	s64 _softexpires;
	struct hrtimer_clock_base *base;
};

struct timer_list {
	unsigned long expires;
};

#include "kernel_sockets.h"

/* A number for each since Linux 5.2. */
struct eventfd_ctx {
	int id;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

#pragma clang attribute pop

#define F_SETLKW	7
#define F_OFD_SETLKW	38
#define S_IFMT		0170000
#define S_IFSOCK	0140000
#define S_IFREG		0100000
#define S_IFBLK		0060000
#define S_IFCHR		0020000
#define S_IFIFO		0010000
#define VM_EXEC		0x4
#define PROC_FS_MAGIC		0x9fa0
#define ANON_INODE_FS_MAGIC	0x09041934

#endif
