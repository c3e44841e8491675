/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * CPU quotas of cgroups. Since 6.18 a thread is throttled itself, when it runs; before, its run queue
 * is, with all that wait there: those that were preempted, and those that are woken meanwhile. No
 * tracepoint says so, but the queue of a cgroup on a CPU has the time for which it was throttled.
 */
#ifndef WHYLAG_THROTTLE_H
#define WHYLAG_THROTTLE_H

#include "state.h"

/* The last time for which a queue was throttled, as its threads found it when they came to the CPU. */
struct throttled_queue {
	u64 sum;		/* ns, of all times */
	u64 from, until;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct throttled_queue);
} throttled_queues SEC(".maps");

static __always_inline bool is_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (bpf_core_field_exists(struct cfs_rq, throttle_count))
		return task->se.cfs_rq->throttle_count > 0;
	return false;
}

/* ns, without the time that goes on; 0 where threads are throttled, and where nothing ever was. */
static __always_inline u64 throttled_of_queue(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return 0;
	if (bpf_core_field_exists(struct cfs_rq, throttled_clock_pelt_time))
		return task->se.cfs_rq->throttled_clock_pelt_time;
	if (bpf_core_field_exists(struct cfs_rq, throttled_clock_task_time))
		return task->se.cfs_rq->throttled_clock_task_time;
	return 0;
}

/* The thread is ready from now on, in the queue of the CPU that it ran on last. */
static __always_inline void note_queue(struct thread *t, struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return;
	t->queue_throttled = throttled_of_queue(task);
	t->queue = (u64)task->se.cfs_rq;
}

static __always_inline u64 overlap(u64 from, u64 until, u64 since, u64 now)
{
	if (from < since)
		from = since;
	if (until > now)
		until = now;
	return until > from ? until - from : 0;
}

/*
 * How long of the time since `t` was ready its queue was throttled. That is exact, to the wait for a
 * CPU behind it, if it is the queue that it was in before; of another one the last time is known.
 * Not static, as hold_class.
 */
__noinline u64 throttled_since_ready(struct thread *t, u64 sum, u64 now)
{
	struct throttled_queue first = { .sum = sum }, *q;
	u64 queue, ns;

	if (!t)
		return 0;
	queue = t->queue_now;
	q = bpf_map_lookup_elem(&throttled_queues, &queue);
	if (!q) {
		bpf_map_update_elem(&throttled_queues, &queue, &first, BPF_ANY);
	} else if (sum > q->sum) {
		q->from = now - (sum - q->sum);
		q->until = now;
		q->sum = sum;
	}
	/* A queue may be where another one was, whose cgroup has been removed. */
	if (t->queue == queue && sum >= t->queue_throttled) {
		ns = sum - t->queue_throttled;
		return ns < now - t->wake_ns ? ns : now - t->wake_ns;
	}
	return q ? overlap(q->from, q->until, t->wake_ns, now) : 0;
}

/* Of a thread that comes to a CPU now: for how long a quota has kept it from one, ns. */
static __always_inline u64 kept_by_quota(struct thread *t, struct task_struct *task, u64 now)
{
	u64 sum = throttled_of_queue(task);

	if (t->open == ACCT_THROTTLED)
		return now - t->wake_ns;
	if (!sum)
		return 0;
	t->queue_now = (u64)task->se.cfs_rq;
	return throttled_since_ready(t, sum, now);
}

#endif
