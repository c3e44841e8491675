/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Call stacks: each is hashed and sent once. A stack map would drop the
 * hottest stacks on a collision (bpf_get_stackid); here a repeated send after
 * an eviction costs bytes, never truth.
 */
#ifndef WHYLAG_STACKS_H
#define WHYLAG_STACKS_H

#include "rings.h"
#include "python.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, u32);	/* how often it was met, or STACK_WHOLE */
} stacks_sent SEC(".maps");

/* Processes with user stacks: their mappings are wanted when they exit. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} stack_owners SEC(".maps");

#define HASHED_AT_ONCE	8

/*
 * Of the stack in cpu->stack. The helpers that fill it set what is beyond its end to 0, so it is
 * hashed in blocks. Not static, as hold_class.
 */
__noinline u64 hash_of_stack(u32 tgid, u32 count)
{
	u32 zero = 0, i, k;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	u64 id = 0x9e3779b97f4a7c15ULL ^ tgid;

	if (!cpu)
		return 0;
	for (i = 0; i < STACK_FRAMES / HASHED_AT_ONCE * HASHED_AT_ONCE; i += HASHED_AT_ONCE) {
		if (i >= count)
			return id;
		for (k = 0; k < HASHED_AT_ONCE; k++) {
			id = (id ^ cpu->stack.frames[i + k]) * 0xff51afd7ed558ccdULL;
			id ^= id >> 32;
		}
	}
	for (; i < STACK_FRAMES; i++) {
		id = (id ^ cpu->stack.frames[i]) * 0xff51afd7ed558ccdULL;
		id ^= id >> 32;
	}
	return id;
}

/* Identity of the `bytes` long stack in cpu->stack, sent if new. */
__noinline u64 send_stack(u32 tgid, long bytes)
{
	u32 zero = 0, count;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	u32 *met, first = 1, was;
	bool python = tgid && pythons;
	u64 id;
	u8 one = 1;

	if (!cpu || bytes <= 0)
		return 0;
	count = (u32)bytes / sizeof(u64);
	if (count > STACK_FRAMES)
		count = STACK_FRAMES;
	id = hash_of_stack(tgid, count);
	if (python)
		id ^= hash_of_python();
	cpu->stack.count = count;
	met = bpf_map_lookup_elem(&stacks_sent, &id);
	if (met) {
		if (*met != STACK_WHOLE)
			++*met;
		cpu->stack_met = *met;
		return id;
	}
	cpu->stack_met = first;
	if (python)
		send_python(tgid, id);
	cpu->stack.type = RECORD_STACK;
	cpu->stack.tgid = tgid;
	cpu->stack.id = id;
	if (output(&rare, &cpu->stack, __builtin_offsetof(struct stack_record, frames) +
				       count * sizeof(u64))) {
		cpu->losses[LOSS_RARE_RING]++;
		return id;
	}
	was = hold_own(cpu);
	bpf_map_update_elem(&stacks_sent, &id, &first, BPF_ANY);
	if (tgid)
		bpf_map_update_elem(&stack_owners, &tgid, &one, BPF_ANY);
	release_own(cpu, was);
	return id;
}

/* Kernel stack of a task that is not running. */
static __always_inline u64 stack_of_sleeper(struct cpu *cpu,
					    struct task_struct *task)
{
	if (no_stacks)
		return 0;
	return send_stack(0, bpf_get_task_stack(task, cpu->stack.frames,
						sizeof(cpu->stack.frames), 0));
}

/* Kernel stack of the current task. */
static __always_inline u64 kernel_stack_here(void *ctx, struct cpu *cpu)
{
	if (no_stacks)
		return 0;
	return send_stack(0, bpf_get_stack(ctx, cpu->stack.frames,
					   sizeof(cpu->stack.frames), 0));
}

/* User stack of the current task. Global functions ask for it, which are handed no ctx. */
static __always_inline u64 user_stack_here(struct cpu *cpu, u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (no_stacks)
		return 0;
	if (pythons)
		walk_python(tgid);
	return send_stack(tgid, bpf_get_task_stack(task, cpu->stack.frames,
						   sizeof(cpu->stack.frames),
						   BPF_F_USER_STACK));
}

#endif
