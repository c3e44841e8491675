/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Sums of who ran while watched threads waited for a CPU.
 */
#ifndef WHYLAG_RUNNERS_H
#define WHYLAG_RUNNERS_H

#include "sampling.h"

/* Shorter delays are not worth naming who ran instead. */
#define RUNNER_MIN_NS	20000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct runner_key);
	__type(value, struct runner_sum);
} runner_sums SEC(".maps");

/* What found no room there: whoever waited, and whoever ran. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct runner_sum);
} other_runners SEC(".maps");

/* How long it had the CPU since `since`. */
static __always_inline u64 ran_since(struct ran *ran, u64 since)
{
	u64 from = ran->since > since ? ran->since : since;

	return ran->until > from ? ran->until - from : 0;
}

/*
 * Adds what `ran` had, `ns`, of a delay of one of `tgid`, and of `like` ns of such delays, of which this
 * is the one that is looked at. Not static, as hold_class.
 */
__noinline int add_runner(u32 tgid, struct ran *ran, u64 ns, u64 delay, u64 like)
{
	struct runner_key key = { .tgid = tgid };
	struct runner_sum *sum;

	if (!ran || !delay)
		return 0;
	key.runner_tgid = ran->who.tgid;
	key.realtime = ran->realtime;
	sum = bpf_map_lookup_elem(&runner_sums, &key);
	if (!sum) {
		struct runner_sum first = {};
		u32 zero = 0;

		bpf_map_update_elem(&runner_sums, &key, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&runner_sums, &key);
		if (!sum)
			sum = bpf_map_lookup_elem(&other_runners, &zero);
		if (!sum)
			return 0;
	}
	__sync_fetch_and_add(&sum->count, like == delay ? 1 : (like + delay / 2) / delay);
	__sync_fetch_and_add(&sum->ns, like == delay ? ns : ns * like / delay);
	__builtin_memcpy(sum->runner_comm, ran->who.comm, 16);
	return 0;
}

/*
 * Divides a delay, from t->wake_ns to `now`, among those who had this CPU in it. What is longer ago
 * than the ring reaches is nobody's.
 *
 * Without calls a sample of the shorter ones is. Where many threads take turns several ran in each delay;
 * to add each of them took a fifth of a switch.
 */
__noinline int add_runners(struct thread *t, struct cpu *cpu, u64 now)
{
	u32 last, i;
	u64 delay, like;

	if (!t || !cpu)
		return 0;
	delay = like = now - t->wake_ns;
	if (calls_off)
		like = stands_for(t, delay, RUNNER_SAMPLE_NS, now);
	if (!like)
		return 0;
	last = cpu->ran_head - 1;
	for (i = 0; i < RAN_SEEN; i++) {
		struct ran *ran = &cpu->ran[(last - i) & (RAN_SEEN - 1)];
		u64 ns = ran_since(ran, t->wake_ns);

		if (ran->until <= t->wake_ns)
			break;
		if (ns)
			add_runner(t->tgid, ran, ns, delay, like);
	}
	return 0;
}

#endif
