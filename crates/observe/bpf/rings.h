/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The two rings to the recorder, and records into them.
 */
#ifndef WHYLAG_RINGS_H
#define WHYLAG_RINGS_H

#include "state.h"

/* Outliers in one ring, everything that must not drown in the other. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);	/* the loader may make it smaller */
} outliers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);	/* the loader may make it smaller */
} rare SEC(".maps");

#define RING_WAKE_BYTES	(1 << 20)

/* What is sent of sleeps and holds: of a thousand threads that end at once each has some. */
#define SHORT_OUTLIER	__builtin_offsetof(struct outlier_record, breakdown)

/*
 * A ring and an LRU map have locks, and where these are contended the programs
 * for locks run within the one that waits, which may have the lock by then.
 * So they are to see that it is one of ours.
 */
static __always_inline u32 hold_own(struct cpu *cpu)
{
	volatile u32 *busy = &cpu->busy;
	u32 was = *busy;

	*busy = 1;
	barrier();
	return was;
}

static __always_inline void release_own(struct cpu *cpu, u32 was)
{
	volatile u32 *busy = &cpu->busy;

	barrier();
	*busy = was;
}

/* Room in a ring, or NULL. */
static __always_inline void *reserve(void *ring, u64 size)
{
	u32 zero = 0, was;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	void *room;

	if (!cpu)
		return NULL;
	was = hold_own(cpu);
	room = bpf_ringbuf_reserve(ring, size, 0);
	release_own(cpu, was);
	return room;
}

/* Wakes the recorder only when a good part of a ring is full. */
static __always_inline u64 ring_flags(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > RING_WAKE_BYTES ?
		BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Sends a copy of `size` bytes; 0, or an error if there is no room. */
static __always_inline long output(void *ring, void *from, u64 size)
{
	u32 zero = 0, was;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	long failed;

	if (!cpu)
		return -1;
	was = hold_own(cpu);
	failed = bpf_ringbuf_output(ring, from, size, ring_flags(ring));
	release_own(cpu, was);
	return failed;
}

static __always_inline void send_event(u32 kind, u32 tid, u32 tgid, u64 now,
				       u64 value, u64 value2, const void *text)
{
	struct event_record *e = reserve(&rare, sizeof(*e));

	if (!e) {
		lost(LOSS_RARE_RING);
		return;
	}
	e->type = RECORD_EVENT;
	e->kind = kind;
	e->tid = tid;
	e->tgid = tgid;
	e->time_ns = now;
	e->value = value;
	e->value2 = value2;
	e->text[0] = 0;
	if (text)
		bpf_probe_read_kernel_str(e->text, sizeof(e->text), text);
	bpf_ringbuf_submit(e, ring_flags(&rare));
}

#endif
