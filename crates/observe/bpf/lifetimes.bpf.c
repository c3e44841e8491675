/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Who is watched: from fork, exec and exit, and from a walk over all tasks at
 * the start; the same walk gives the accounts to the recorder.
 */
#include "threads.h"
#include "presence.h"
#include "cgroup.h"

/* A child of a watched process, or another thread of one. */
static __always_inline bool has_watched_parent(struct task_struct *task)
{
	return slot_of(task->real_parent) || slot_of(task->group_leader);
}

static __always_inline bool is_target(struct task_struct *task)
{
	u32 tgid = tgid_of(task);

	if (!tgid || tgid == recorder_tgid)
		return false;
	switch (target_kind) {
	case TARGET_PROCESS:
		return tgid == target_pid || (follow && has_watched_parent(task));
	case TARGET_THREAD:
		return tid_of(task) == target_pid;
	case TARGET_HOST:
		return true;
	case TARGET_CGROUP:
		return in_target_cgroup(task);
	}
	/* A command is watched from its exec on, and then what comes of it. */
	return follow ? has_watched_parent(task) : slot_of(task->group_leader);
}

/*
 * Whether a new thread is watched. That its parent is, only the storage tells
 * for sure: a walk may have begun to watch it since it came to its CPU.
 */
static __always_inline bool inherits(struct task_struct *parent,
				     struct task_struct *child)
{
	switch (target_kind) {
	case TARGET_HOST:
	case TARGET_CGROUP:
		return is_target(child);
	case TARGET_THREAD:
		return false;
	}
	if (child->tgid != parent->tgid && !follow)
		return false;
	return slot_of(parent);
}

/* A new thread is in the kernel until the call that made it ends, which is not seen without those programs. */
static __always_inline u32 base_at_birth(struct task_struct *child)
{
	return calls_off && !(child->flags & PF_KTHREAD) ? ACCT_USER : ACCT_KERNEL;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct cpu *cpu = this_cpu(PROG_SCHED_PROCESS_FORK);
	struct thread *t;
	u64 now;
	u32 slot;

	if (!cpu || stopped || !parent || !child || !inherits(parent, child) ||
	    slot_of(child))
		return 0;
	now = bpf_ktime_get_ns();
	t = prepare(child, &slot, now, ACCT_RUNNABLE_WAKEUP, base_at_birth(child));
	if (!t) {
		lost(LOSS_THREAD);
		return 0;
	}
	t->fresh = 1;
	t = this_thread(cpu);
	if (t)
		t->fresh = t->got = 0;
	watch(child, slot);
	if (child->tgid != parent->tgid) {
		python_forked(tgid_of(parent), tid_of(child));
		send_event(EVENT_FORK, tid_of(parent), tgid_of(parent), now,
			   tid_of(child), 0, child->comm);
	}
	return 0;
}

/* A command, or what was put into the cgroup before its exec. */
static __always_inline bool begins_at_exec(struct task_struct *p)
{
	if (target_kind == TARGET_COMMAND)
		return tgid_of(p) == target_pid;
	return target_kind == TARGET_CGROUP && is_target(p);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p, int old_pid,
	     struct linux_binprm *bprm)
{
	struct cpu *cpu = this_cpu(PROG_SCHED_PROCESS_EXEC);
	struct thread *t;
	u64 now;
	u32 slot;

	if (!cpu || stopped || !p)
		return 0;
	forget_noted(cpu, p->tgid);
	now = bpf_ktime_get_ns();
	if (!cpu->slot) {
		if (slot_of(p) || !begins_at_exec(p))
			return 0;
		t = prepare(p, &slot, now, ACCT_KERNEL, ACCT_KERNEL);
		if (!t) {
			lost(LOSS_THREAD);
			return 0;
		}
		already_in_call(t, current_call());
		t->open = base_account(t);
		watch(p, slot);
		cpu->slot = slot;
	}
	t = thread_in(cpu->slot);
	if (t) {
		t->linker = linker_of(p);
		t->starting = 1;
		t->binding = 0;
		t->python = 0;
		t->sleep_ip = 0;
	}
	python_gone(tgid_of(p));
	send_event(EVENT_EXEC, tid_of(p), tgid_of(p), now, 0, 0,
		   BPF_CORE_READ(bprm, filename));
	return 0;
}

struct bpf_iter_task_vma {
	u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it,
				 struct task_struct *task, u64 addr) __ksym __weak;
extern struct vm_area_struct *
bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

static __always_inline void send_mapping(struct task_struct *task, u32 tgid,
					 struct vm_area_struct *vma)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);
	struct mapping_record *m;
	struct dentry *dentry, *parent;
	u32 i;

	if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return;
	m = reserve(&rare, sizeof(*m));
	if (!m) {
		lost(LOSS_RARE_RING);
		return;
	}
	m->type = RECORD_MAPPING;
	m->tgid = tgid;
	m->start = BPF_CORE_READ(vma, vm_start);
	m->end = BPF_CORE_READ(vma, vm_end);
	m->offset = BPF_CORE_READ(vma, vm_pgoff) << 12;
	/* Code in anonymous memory is just-in-time compiled: no file. */
	m->inode = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	m->device = file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
	m->user = BPF_CORE_READ(task, cred, euid.val);
	m->pad = 0;
	m->part_count = 0;
	dentry = file ? BPF_CORE_READ(file, f_path.dentry) : NULL;
	for (i = 0; dentry && i < PATH_PARTS; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry)
			break;
		bpf_probe_read_kernel_str(m->parts + i * PATH_PART, PATH_PART,
					  BPF_CORE_READ(dentry, d_name.name));
		m->part_count = i + 1;
		dentry = parent;
	}
	bpf_ringbuf_submit(m, ring_flags(&rare));
}

/*
 * After vfork a child runs in its parent's memory until it calls exec. What is there stays when
 * the child ends, and may be thousands of mappings.
 */
static __always_inline bool borrows(struct task_struct *task, struct mm_struct *mm)
{
	return mm && mm == BPF_CORE_READ(task, real_parent, mm);
}

/* Nobody can read /proc/PID/maps afterwards, so the mappings are sent now. */
static __always_inline void send_mappings(struct task_struct *task)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	u32 tgid = tgid_of(task);

	if (!bpf_iter_task_vma_new ||
	    bpf_map_delete_elem(&stack_owners, &tgid) ||
	    borrows(task, task->mm))
		return;
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it)))
		send_mapping(task, tgid, vma);
	bpf_iter_task_vma_destroy(&it);
}

static __always_inline int exited(struct task_struct *p, struct mm_struct *mm,
				  bool group_dead)
{
	struct cpu *cpu = this_cpu(PROG_SCHED_PROCESS_EXIT);
	u64 key = (u64)mm;

	if (!cpu || stopped || !cpu->slot || !p || !group_dead)
		return 0;
	send_mappings(bpf_get_current_task_btf());
	if (!borrows(p, mm))
		bpf_map_delete_elem(&mm_locks, &key);
	python_gone(tgid_of(p));
	send_event(EVENT_EXIT, tid_of(p), tgid_of(p), bpf_ktime_get_ns(),
		   p->exit_code, 0, NULL);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p, bool group_dead)
{
	return exited(p, p->mm, group_dead);
}

/*
 * Before 6.16 it comes later, when the memory has been given up: then it is
 * still the active one. And it says nothing of the group. The count of threads
 * that live has been taken down by then; two last ones that exit at once may
 * both find 0.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_late, struct task_struct *p)
{
	return exited(p, p->mm ?: p->active_mm, !p->signal->live.counter);
}

/* The call that a task off the CPU is in: it shows what the task waits for. */
static __always_inline u16 call_of(struct task_struct *task)
{
	return task->flags & PF_KTHREAD ? NO_CALL : saved_call(task);
}

/*
 * What a call waits for as far as its number tells. Of a command, whose threads are met by a walk only if
 * they found no room when they began, that is all: to look at files takes the verifier long at each start.
 */
static __always_inline u32 account_by_number(u16 call, u32 otherwise)
{
	switch (call_kinds[call & (CALLS_MAX - 1)]) {
	case CALL_FUTEX:
		return ACCT_FUTEX;
	case CALL_POLL:
	case CALL_COMPLETION:
		return ACCT_POLL;
	case CALL_TIMER:
		return ACCT_TIMER;
	case CALL_CHILD:
		return ACCT_CHILD;
	case CALL_ACCEPT:
		return ACCT_SOCKET_ACCEPT;
	case CALL_CONNECT:
		return ACCT_SOCKET_CONNECT;
	case CALL_RECEIVE:
		return ACCT_SOCKET_RECEIVE;
	case CALL_SEND:
		return ACCT_SOCKET_SEND;
	case CALL_FILE_LOCK:
		return ACCT_FILE_LOCK;
	case CALL_DISK:
		return ACCT_DISK;
	}
	return otherwise;
}

static __always_inline u32 account_of_call(struct thread *t, struct task_struct *task, u32 otherwise)
{
	if (target_kind == TARGET_COMMAND)
		return account_by_number(t->call, otherwise);
	return call_account(t, task, otherwise);
}

/* What a task that is not running waits for. */
static __always_inline void find_state(struct thread *t, struct task_struct *task)
{
	u32 state = task->__state;

	already_in_call(t, call_of(task));
	if (is_stopped(task, state))
		t->open = ACCT_STOPPED;
	else if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)))
		t->open = ACCT_RUNNABLE_PREEMPTED;
	else if (t->call != NO_CALL)
		t->open = account_of_call(t, task, state & (TASK_INTERRUPTIBLE | TASK_NOLOAD) ?
						   ACCT_OTHER : ACCT_UNINTERRUPTIBLE);
	else
		t->open = ACCT_OTHER;
	t->off_account = t->open;
}

/*
 * Begins to watch what is there: walked when recording starts until it finds
 * nothing new; later where threads found no room, and for a cgroup, since
 * processes are moved into it.
 */
SEC("iter/task")
int start_watching(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	u32 slot, base;

	if (!task || !is_target(task) || slot_of(task))
		return 0;
	base = task->flags & PF_KTHREAD ? ACCT_KERNEL : ACCT_USER;
	t = prepare(task, &slot, bpf_ktime_get_ns(), ACCT_UNACCOUNTED, base);
	if (!t) {
		/* Otherwise a later walk takes it. */
		if (slot_next / BLOCK_THREADS >= thread_blocks)
			lost(LOSS_THREAD);
		return 0;
	}
	/* Else it is known at its first event. */
	if (!task->on_cpu)
		find_state(t, task);
	watch(task, slot);
	__sync_fetch_and_add(&walks_took, 1);
	taken++;
	return 0;
}

/* Walked about once a second: the accounts of threads that moved. */
SEC("iter/task")
int dump_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	union record *room;
	struct thread *t;
	u32 zero = 0;

	if (!task)
		return 0;
	t = thread_of(task);
	if (t && stopped) {
		send_without_stack(t, task);
		keep_open_wait(t, bpf_ktime_get_ns());
		keep_waits(t);
		keep_errors(t);
	}
	if (!t || !(t->changed || dump_all))
		return 0;
	room = bpf_map_lookup_elem(&dump_buffer, &zero);
	if (!room)
		return 0;
	t->changed = 0;
	fill_record(&room->thread, t, task, bpf_ktime_get_ns());
	if (stopped)
		fill_place(&room->thread, t, task);
	room->thread.alive = 1;
	/* Where the page is full this runs again, for the next. */
	if (bpf_seq_write(ctx->meta->seq, &room->thread, sizeof(room->thread)))
		t->changed = 1;
	return 0;
}
