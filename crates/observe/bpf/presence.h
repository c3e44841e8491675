/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * When programs ran, watched or not: of each process the pieces of a second in
 * which one of its threads had a CPU.
 */
#ifndef WHYLAG_PRESENCE_H
#define WHYLAG_PRESENCE_H

#include "state.h"

#define PIECES	(1000000000 / PRESENCE_PIECE_NS)

/* A program that leaves its CPU to nobody for longer is missed before that. */
#define SECONDS_MAX	4

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct presence_key);
	__type(value, struct presence);
} presences SEC(".maps");

/* Not static, as hold_class. */
__noinline int add_pieces(struct who *who, u64 second, u32 first, u32 last)
{
	struct presence_key key = { .second = second };
	struct presence *known;
	u32 low = first < 64 ? first : 64, low_end = last < 64 ? last + 1 : 64;
	u32 high = first > 64 ? first - 64 : 0;
	u32 high_end = last >= 64 ? last - 63 : 0;

	if (!who)
		return 0;
	key.tgid = who->tgid;
	known = bpf_map_lookup_elem(&presences, &key);
	if (!known) {
		struct presence empty = {};

		bpf_map_update_elem(&presences, &key, &empty, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&presences, &key);
		if (!known) {
			lost(LOSS_PRESENCE);
			return 0;
		}
	}
	if (low < low_end)
		__sync_fetch_and_or(&known->low, ~0ULL >> (64 - (low_end - low)) << low);
	if (high < high_end)
		__sync_fetch_and_or(&known->high,
				    ~0ULL >> (64 - (high_end - high)) << high);
	__builtin_memcpy(known->comm, who->comm, sizeof(known->comm));
	return 0;
}

/* Not static, as hold_class. */
__noinline int add_presence(struct who *who, u64 first, u64 last)
{
	u64 second, i;

	if (!who)
		return 0;
	if (last - first >= SECONDS_MAX * PIECES)
		first = last - SECONDS_MAX * PIECES + 1;
	second = first / PIECES;
	for (i = 0; i < SECONDS_MAX + 1; i++, second++) {
		u32 from, to;

		if (second > last / PIECES)
			break;
		from = second == first / PIECES ? first % PIECES : 0;
		to = second == last / PIECES ? last % PIECES : PIECES - 1;
		add_pieces(who, second, from, to);
	}
	return 0;
}

/* The piece in which a moment is; a division in each of a million switches a second is dear. */
static __always_inline u64 piece_of(struct cpu *cpu, u64 ns)
{
	if (ns - cpu->piece_since < PRESENCE_PIECE_NS)
		return cpu->piece;
	return ns / PRESENCE_PIECE_NS;
}

/* `task` had this CPU from `since`, or, if that is 0, nobody knows since when. */
static __always_inline void note_presence(struct cpu *cpu,
					  struct task_struct *task, u64 since,
					  u64 until)
{
	struct noted *noted = &cpu->noted[task->tgid & (NOTED - 1)];
	u64 first, last = piece_of(cpu, until);
	struct who who;

	if (task->flags & PF_KTHREAD)
		return;
	first = since ? piece_of(cpu, since) : last;
	/* A program that comes and goes is looked up once in a piece. */
	if (noted->tgid == task->tgid && noted->piece == last && first == last)
		return;
	cpu->piece = last;
	cpu->piece_since = last * PRESENCE_PIECE_NS;
	noted->tgid = task->tgid;
	noted->piece = last;
	who.tid = 0;
	who.tgid = tgid_of(task);
	name_task(who.comm, task->group_leader, who.tgid);
	add_presence(&who, first, last);
}

/* It has another name now. */
static __always_inline void forget_noted(struct cpu *cpu, u32 tgid)
{
	cpu->noted[tgid & (NOTED - 1)].tgid = 0;
}

#endif
