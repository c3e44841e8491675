/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Writers held back: dirty page throttling, and commits of the ext4 journal.
 */
#include "threads.h"

struct bdi_writeback;
struct dirty_throttle_control;

/* The kernel reports pauses and commit phases in jiffies. */
static __always_inline int dirty_pause(long pause)
{
	struct cpu *cpu = this_cpu(PROG_WRITEBACK);
	struct thread *t;

	if (!cpu)
		return 0;
	t = this_thread(cpu);
	if (!t || pause <= 0)
		return 0;
	t->dirty_pause = 1;
	send_event(EVENT_DIRTY_THROTTLE, t->tid, t->tgid, bpf_ktime_get_ns(),
		   (u64)pause * jiffy_ns, 0, NULL);
	return 0;
}

SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_dirty_pause, struct bdi_writeback *wb,
	     struct dirty_throttle_control *dtc, unsigned long dirty_ratelimit,
	     unsigned long task_ratelimit, unsigned long dirtied,
	     unsigned long period, long pause)
{
	return dirty_pause(pause);
}

/* Before 6.14 or so: five limits one by one. */
SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_dirty_pause_limits, struct bdi_writeback *wb,
	     unsigned long thresh, unsigned long bg_thresh, unsigned long dirty,
	     unsigned long bdi_thresh, unsigned long bdi_dirty,
	     unsigned long dirty_ratelimit, unsigned long task_ratelimit,
	     unsigned long dirtied, unsigned long period, long pause)
{
	return dirty_pause(pause);
}

SEC("tp_btf/jbd2_run_stats")
int BPF_PROG(on_journal_commit, unsigned int dev, unsigned int tid,
	     struct transaction_run_stats_s *stats)
{
	u64 jiffies;

	if (!only_cpu(PROG_WRITEBACK) || stopped)
		return 0;
	jiffies = stats->rs_running + stats->rs_flushing + stats->rs_logging;
	send_event(EVENT_JOURNAL_COMMIT, 0, 0, bpf_ktime_get_ns(),
		   jiffies * jiffy_ns, dev, NULL);
	return 0;
}
