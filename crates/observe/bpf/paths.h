/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Time by kernel code path: sums of sleeps inside the kernel, and of samples
 * of what runs on a CPU.
 */
#ifndef WHYLAG_PATHS_H
#define WHYLAG_PATHS_H

#include "state.h"
#include "stacks.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct path_key);
	__type(value, struct path_sum);
} path_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct call_error_key);
	__type(value, u64);
} call_errors SEC(".maps");

/* Walking the stack of a disk read would cost a part of a fast one. */
#define DISK_STACK_MIN_NS	100000

/*
* Sleeps whose code path shows why: in the kernel, for no work to come and
 * for no object that wait_sums already names.
 */
static __always_inline bool sleeps_inside(u32 account)
{
	const u64 kinds = 1ULL << ACCT_MMAP_LOCK_READ | 1ULL << ACCT_MMAP_LOCK_WRITE |
			  1ULL << ACCT_RWSEM | 1ULL << ACCT_MUTEX |
			  1ULL << ACCT_RT_MUTEX | 1ULL << ACCT_OTHER_LOCK |
			  1ULL << ACCT_FAULT_MINOR | 1ULL << ACCT_FAULT_MAJOR |
			  1ULL << ACCT_DISK | 1ULL << ACCT_DIRTY_THROTTLE |
			  1ULL << ACCT_FILE_LOCK | 1ULL << ACCT_STOPPED |
			  1ULL << ACCT_UNINTERRUPTIBLE;

	return kinds >> (account & 63) & 1;
}

static __always_inline int add_to_path(struct path_key *key, u64 ns)
{
	struct path_sum *sum = bpf_map_lookup_elem(&path_sums, key);

	if (!sum) {
		struct path_sum first = {};

		bpf_map_update_elem(&path_sums, key, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&path_sums, key);
		if (!sum)
			return -1;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->ns, ns);
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	return 0;
}

/* A sleep that ends: `task` is about to run again. */
static __noinline int add_sleep_path(struct task_struct *task, u64 ns)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t = current_thread();
	struct path_key key = {};

	if (!cpu || !t)
		return 0;
	key.tgid = t->tgid;
	key.account = t->off_account;
	key.call = t->call;
	if (t->lock)
		key.kernel = t->lock_stack;
	else if (t->off_account != ACCT_DISK || ns >= DISK_STACK_MIN_NS)
		key.kernel = stack_of_sleeper(cpu, task);
	if (add_to_path(&key, ns))
		lost(LOSS_PATH);
	return 0;
}

/* Adds the failed calls that a thread has counted since it did so last. */
__noinline int keep_errors(struct thread *t)
{
	struct call_error_key key;
	u64 *count, errors;

	if (!t || !t->errors)
		return 0;
	/* Older kernels take no key from memory that was handed to a global function. */
	key = t->errors_of;
	errors = t->errors;
	t->errors = 0;
	count = bpf_map_lookup_elem(&call_errors, &key);
	if (count)
		__sync_fetch_and_add(count, errors);
	else if (bpf_map_update_elem(&call_errors, &key, &errors, BPF_ANY))
		lost(LOSS_CALL_ERROR);
	return 0;
}

/* How often, at most, a thread adds the failures of one call to the map: servers read until EAGAIN. */
#define ERRORS_KEPT_NS	10000000

static __always_inline void count_error(struct thread *t, u16 call, u16 error, u64 now)
{
	if (t->errors_of.call != call || t->errors_of.error != error ||
	    now - t->errors_kept >= ERRORS_KEPT_NS) {
		keep_errors(t);
		t->errors_of.tgid = t->tgid;
		t->errors_of.call = call;
		t->errors_of.error = error;
		t->errors_kept = now;
	}
	t->errors++;
}

#endif
