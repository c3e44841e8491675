/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Block I/O of the host: issue to completion, per device.
 */
#include "threads.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u64);
} requests SEC(".maps");

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request *rq)
{
	u64 key = (u64)rq, now;

	if (!only_cpu(PROG_BLOCK_RQ) || stopped)
		return 0;
	now = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&requests, &key, &now, BPF_ANY))
		lost(LOSS_REQUEST);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_complete, struct request *rq)
{
	struct cpu *cpu = only_cpu(PROG_BLOCK_RQ);
	u64 key = (u64)rq, now, ns, *start;
	struct gendisk *disk;
	u32 device;

	if (!cpu || stopped)
		return 0;
	start = bpf_map_lookup_elem(&requests, &key);
	if (!start)
		return 0;
	now = bpf_ktime_get_ns();
	ns = now - *start;
	cpu->io_issued = *start;
	cpu->io_done = now;
	bpf_map_delete_elem(&requests, &key);
	disk = BPF_CORE_READ(rq, q, disk);
	device = BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
	hist_count(hist_slot(0, HIST_BLOCK_IO, device), ns);
	if (ns >= threshold_ns)
		send_event(EVENT_BLOCK_IO, 0, 0, now, ns, device, NULL);
	return 0;
}
