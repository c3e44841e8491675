/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * mmap_lock: waits by its tracepoints, which also show who holds it. Where
 * there is no contention_begin, a sleep between them is the wait.
 */
#include "threads.h"

/* The lock of `mm`; made when a watched thread first uses its own. */
static __always_inline struct mm_lock *mm_lock_of(struct mm_struct *mm,
						  struct thread *t)
{
	u64 key = (u64)mm;
	struct mm_lock *lock = bpf_map_lookup_elem(&mm_locks, &key);
	u32 zero = 0;
	struct mm_lock *fresh;

	if (lock || !t || bpf_get_current_task_btf()->mm != mm)
		return lock;
	fresh = bpf_map_lookup_elem(&mm_lock_zero, &zero);
	if (!fresh)
		return NULL;
	if (bpf_map_update_elem(&mm_locks, &key, fresh, BPF_NOEXIST) == -7 /* E2BIG */)
		lost(LOSS_HOLD);
	lock = bpf_map_lookup_elem(&mm_locks, &key);
	if (lock)
		lock->tgid = t->tgid;
	return lock;
}

static __always_inline int mm_lock_starts(struct mm_struct *mm, bool write)
{
	struct cpu *cpu = this_cpu(PROG_MMAP_LOCK_START_LOCKING);
	struct thread *t;

	if (!cpu)
		return 0;
	t = this_thread(cpu);
	if (!t)
		return 0;
	t->mm_waited = (u64)mm;
	t->mm_write = write;
	t->mm_wait_start = 0;
	/* Not when it sleeps: nothing may be allocated while the scheduler switches. */
	if (locks_off && !t->mm_snapshot) {
		bpf_task_storage_get(&hold_snapshots, bpf_get_current_task_btf(), 0,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
		t->mm_snapshot = 1;
	}
	return 0;
}

/* The variants with the path of the memory cgroup are for kernels before 6.13. */
SEC("tp_btf/mmap_lock_start_locking")
int BPF_PROG(on_mmap_start, struct mm_struct *mm, bool write)
{
	return mm_lock_starts(mm, write);
}

SEC("tp_btf/mmap_lock_start_locking")
int BPF_PROG(on_mmap_start_path, struct mm_struct *mm, char *path, bool write)
{
	return mm_lock_starts(mm, write);
}

/* Called when the wait turns out to be a contended one. */
__noinline int mm_wait_begins(u64 now)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct thread *t = current_thread();
	struct hold_snapshot *snapshot;
	struct mm_lock *lock;
	u64 key;

	if (!t)
		return 0;
	t->mm_wait_start = now;
	key = t->mm_waited;
	lock = bpf_map_lookup_elem(&mm_locks, &key);
	snapshot = bpf_task_storage_get(&hold_snapshots, current, 0,
					locks_off ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (lock && snapshot)
		hold_totals(lock, now, snapshot);
	return 0;
}

__noinline int add_hold(struct mm_lock *lock, u32 class, u32 waiter_write, u64 ns)
{
	struct hold_key key = {};
	struct hold_sum *sum;
	u64 class_id;

	if (!lock || class >= HOLD_CLASSES || !ns)
		return 0;
	class_id = lock->classes[class].key;
	key.tgid = lock->tgid;
	key.holder_tgid = class_id >> 32;
	key.holder_call = class_id ? (u16)((u32)class_id >> 1) : NO_CALL;
	key.holder_write = class_id & 1;
	key.waiter_write = waiter_write;
	sum = bpf_map_lookup_elem(&hold_sums, &key);
	if (!sum) {
		struct hold_sum first = {};

		if (bpf_map_update_elem(&hold_sums, &key, &first, BPF_NOEXIST) == -7 /* E2BIG */)
			lost(LOSS_HOLD);
		sum = bpf_map_lookup_elem(&hold_sums, &key);
		if (!sum)
			return 0;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->ns, ns);
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	__builtin_memcpy(sum->holder_comm, lock->classes[class].comm, 16);
	return 0;
}

/* Not static, as hold_class. */
__noinline int consider(struct hold *best, struct hold *hold, u64 until, u64 start)
{
	u64 since;

	if (!best || !hold)
		return 0;
	since = hold->since > start ? hold->since : start;
	if (!hold->since || until <= since || until - since <= best->until - best->since)
		return 0;
	*best = *hold;
	best->since = since;
	best->until = until;
	return 0;
}

/* The single hold that overlapped the wait most: the thread to name. */
__noinline int name_holder(struct mm_lock *lock, struct thread *t, u64 now)
{
	u64 start;
	u32 i;

	if (!lock || !t)
		return 0;
	start = t->mm_wait_start;
	t->holder.since = t->holder.until = 0;
	for (i = 0; i < HOLDS_KEPT; i++)
		consider(&t->holder, &lock->kept[i], lock->kept[i].until, start);
	for (i = 0; i < HOLD_READERS; i++)
		consider(&t->holder, &lock->readers[i], now, start);
	return 0;
}

/* No clock of another CPU makes it less than none. Not static, as hold_class. */
__noinline u64 grown(u64 before, u64 after)
{
	return (s64)(after - before) > 0 ? after - before : 0;
}

/* Several readers at once hold it for longer than the wait: share. Not static, as hold_class. */
__noinline u64 part_of_wait(u64 ns, u64 all, u64 waited)
{
	return all > waited ? ns * (waited >> 10) / ((all >> 10) + 1) : ns;
}

/* A contended wait is over: who held the lock meanwhile? */
__noinline int mm_wait_ends(u64 now)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct thread *t = current_thread();
	struct hold_snapshot *before, *after;
	struct mm_lock *lock;
	u64 key, all = 0, waited;
	u32 i, zero = 0;

	after = bpf_map_lookup_elem(&hold_scratch, &zero);
	if (!t || !after)
		return 0;
	key = t->mm_waited;
	lock = bpf_map_lookup_elem(&mm_locks, &key);
	before = bpf_task_storage_get(&hold_snapshots, current, 0, 0);
	if (!lock || !before)
		return 0;
	hold_totals(lock, now, after);
	waited = now - t->mm_wait_start;
	for (i = 0; i < HOLD_CLASSES; i++) {
		after->ns[i] = grown(before->ns[i], after->ns[i]);
		all += after->ns[i];
	}
	for (i = 0; i < HOLD_CLASSES; i++)
		add_hold(lock, i, t->mm_write, part_of_wait(after->ns[i], all, waited));
	if (waited >= threshold_ns)
		name_holder(lock, t, now);
	return 0;
}

static __always_inline void begin_hold(struct mm_lock *lock, struct hold *hold,
				       u64 now, bool write)
{
	set_who(&hold->who, bpf_get_current_task_btf());
	hold->call = current_call();
	hold->write = write;
	hold->class = hold_class(lock, class_key(hold->who.tgid, hold->call,
						 write));
	hold->since = now;
}

static __always_inline void end_hold(void *ctx, struct cpu *cpu,
				     struct mm_lock *lock, struct hold *hold,
				     u64 now)
{
	u64 ns = now - hold->since;
	u32 class = hold->class & (HOLD_CLASSES - 1);
	struct outlier_record *o;
	u32 slot;

	if ((s64)ns < 0)
		ns = 0;
	__sync_fetch_and_add(&lock->classes[class].ns, ns);
	if (ns >= threshold_ns / 4) {
		slot = __sync_fetch_and_add(&lock->kept_head, 1) & (HOLDS_KEPT - 1);
		hold->until = now;
		lock->kept[slot] = *hold;
	}
	if (ns >= threshold_ns) {
		u64 stack = kernel_stack_here(ctx, cpu);

		o = reserve(&outliers, SHORT_OUTLIER);
		if (!o) {
			cpu->losses[LOSS_EVENT_RING]++;
		} else {
			__builtin_memset(o, 0, SHORT_OUTLIER);
			o->type = RECORD_OUTLIER;
			o->kind = OUTLIER_LOCK_HOLD;
			o->tid = hold->who.tid;
			o->tgid = hold->who.tgid;
			o->cpu = bpf_get_smp_processor_id();
			o->call = hold->call;
			o->start_ns = hold->since;
			o->duration_ns = ns;
			o->sleep.kernel_stack = stack;
			o->sleep.object = lock->tgid;
			o->sleep.account = hold->write ? ACCT_MMAP_LOCK_WRITE :
							 ACCT_MMAP_LOCK_READ;
			__builtin_memcpy(o->comm, hold->who.comm, 16);
			bpf_ringbuf_submit(o, ring_flags(&outliers));
		}
	}
	hold->since = 0;
}

/* Instead of a time: taken, and who holds it is about to be written. */
#define HOLD_TAKEN	(~0ULL)

static __always_inline struct hold *reader_slot(struct mm_lock *lock, u32 tid)
{
	u32 i;

	for (i = 0; i < HOLD_READERS; i++) {
		u64 since = lock->readers[i].since;

		/* The last one who had a slot that was just taken may be this thread. */
		if (since && since != HOLD_TAKEN && lock->readers[i].who.tid == tid)
			return &lock->readers[i];
	}
	return NULL;
}

static __always_inline struct hold *free_reader_slot(struct mm_lock *lock)
{
	u32 i;

	for (i = 0; i < HOLD_READERS; i++)
		if (!__sync_val_compare_and_swap(&lock->readers[i].since, 0,
						  HOLD_TAKEN))
			return &lock->readers[i];
	return NULL;
}

static __always_inline int mm_lock_acquired(void *ctx, struct mm_struct *mm,
					    bool write, bool success)
{
	struct cpu *cpu = this_cpu(PROG_MMAP_LOCK_ACQUIRE_RETURNED);
	struct mm_lock *lock;
	struct thread *t;
	struct hold *hold;
	u64 now;

	if (!cpu || stopped)
		return 0;
	t = this_thread(cpu);
	lock = mm_lock_of(mm, t);
	if (!lock)
		goto out;
	now = bpf_ktime_get_ns();
	if (t && t->mm_wait_start) {
		mm_wait_ends(now);
		if (t->mm_slept)
			hist_count(hist_slot(t->tgid, HIST_LOCK, t->mm_write ?
					     LOCK_CLASS_MMAP_WRITE : LOCK_CLASS_MMAP_READ),
				   now - t->mm_wait_start);
	}
	if (!success)
		goto out;
	if (write) {
		begin_hold(lock, &lock->writer, now, true);
		goto out;
	}
	if (lock->writer.since &&
	    lock->writer.who.tid == tid_of(bpf_get_current_task_btf()))
		end_hold(ctx, cpu, lock, &lock->writer, now);	/* downgraded */
	hold = free_reader_slot(lock);
	if (hold)
		begin_hold(lock, hold, now, false);
	else
		cpu->losses[LOSS_READER]++;
out:
	if (t) {
		t->mm_waited = 0;
		t->mm_wait_start = 0;
		t->mm_slept = 0;
	}
	return 0;
}

SEC("tp_btf/mmap_lock_acquire_returned")
int BPF_PROG(on_mmap_acquired, struct mm_struct *mm, bool write, bool success)
{
	return mm_lock_acquired(ctx, mm, write, success);
}

SEC("tp_btf/mmap_lock_acquire_returned")
int BPF_PROG(on_mmap_acquired_path, struct mm_struct *mm, char *path, bool write,
	     bool success)
{
	return mm_lock_acquired(ctx, mm, write, success);
}

static __always_inline int mm_lock_released(void *ctx, struct mm_struct *mm,
					    bool write)
{
	struct cpu *cpu = this_cpu(PROG_MMAP_LOCK_RELEASED);
	u64 key = (u64)mm;
	struct mm_lock *lock;
	struct hold *hold;

	if (!cpu || stopped)
		return 0;
	lock = bpf_map_lookup_elem(&mm_locks, &key);
	if (!lock)
		return 0;
	hold = write ? &lock->writer :
		       reader_slot(lock, tid_of(bpf_get_current_task_btf()));
	if (hold && hold->since)
		end_hold(ctx, cpu, lock, hold, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/mmap_lock_released")
int BPF_PROG(on_mmap_released, struct mm_struct *mm, bool write)
{
	return mm_lock_released(ctx, mm, write);
}

SEC("tp_btf/mmap_lock_released")
int BPF_PROG(on_mmap_released_path, struct mm_struct *mm, char *path, bool write)
{
	return mm_lock_released(ctx, mm, write);
}
