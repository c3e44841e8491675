/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Memory that a watched thread has to make free for itself: direct reclaim
 * and compaction.
 */
#include "threads.h"

static __always_inline struct thread *memory_thread(void)
{
	struct cpu *cpu = this_cpu(PROG_RECLAIM_COMPACTION);

	return cpu ? this_thread(cpu) : NULL;
}

static __always_inline void memory_done(struct thread *t, u64 start, u32 hist,
					u32 event)
{
	u64 now = bpf_ktime_get_ns(), ns = now - start;

	if (!start)
		return;
	hist_count(hist_slot(t->tgid, hist, 0), ns);
	if (ns >= threshold_ns)
		send_event(event, t->tid, t->tgid, now, ns, 0, NULL);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_reclaim_begin)
{
	struct thread *t = memory_thread();

	if (t)
		t->reclaim_start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_reclaim_end)
{
	struct thread *t = memory_thread();

	if (t) {
		memory_done(t, t->reclaim_start, HIST_RECLAIM, EVENT_RECLAIM);
		t->reclaim_start = 0;
	}
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(on_compaction_begin)
{
	struct thread *t = memory_thread();

	if (t)
		t->compaction_start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(on_compaction_end)
{
	struct thread *t = memory_thread();

	if (t) {
		memory_done(t, t->compaction_start, HIST_COMPACTION,
			    EVENT_COMPACTION);
		t->compaction_start = 0;
	}
	return 0;
}
