/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * First calls of functions that are bound lazily: the dynamic linker looks
 * the symbol up, and touches pages that may not be in memory.
 *
 * Such a call is seen from its first page fault within the linker on, up to
 * the thread's next system call or fault elsewhere; where calls are not
 * reported, up to its last fault or sleep there. Who called cannot be seen
 * by frame pointers, which the linker has not: the recorder finds it among
 * the words of the stack.
 */
#ifndef WHYLAG_LINKER_H
#define WHYLAG_LINKER_H

#include "rings.h"
#include "copies.h"
#include "stacks.h"

/* Longer than a look-up computes between two of its page faults: tables of symbols are hashed. */
#define BINDING_RUNS_NS	5000000

/* The linkers of glibc and musl are mapped in 220 to 640 KiB. */
#define LINKER_SPAN	(640 << 10)

#define AT_NULL		0
#define AT_BASE		7
#define AUXV_PAIRS	24	/* Linux 6.18 has up to 22 on x86-64 */

/* Where the dynamic linker is loaded; 0 for static programs and kernel threads. */
static __noinline u64 linker_of(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 pair[2];
	u32 i;

	if (!mm || !bpf_core_field_exists(mm->saved_auxv))
		return 0;
	for (i = 0; i < AUXV_PAIRS; i++) {
		if (bpf_probe_read_kernel(pair, sizeof(pair), &mm->saved_auxv[2 * i]))
			return 0;
		if (pair[0] == AT_BASE)
			return pair[1];
		if (pair[0] == AT_NULL)
			return 0;
	}
	return 0;
}

static __always_inline bool in_linker(struct thread *t, u64 ip)
{
	return t->linker && ip - t->linker < LINKER_SPAN;
}

/* Sends the top of the current task's user stack; its identity, 0 if lost. */
static __noinline u64 send_words(struct thread *t, u64 ip, u64 sp)
{
	struct words_record *r;
	u32 tgid = t->tgid;
	u8 one = 1;
	u64 id;

	r = reserve(&rare, sizeof(*r));
	if (!r) {
		lost(LOSS_RARE_RING);
		return 0;
	}
	id = (t->first_ns ^ (u64)t->tid << 32 ^ ++t->bindings) * 0xff51afd7ed558ccdULL;
	r->type = RECORD_WORDS;
	r->tgid = tgid;
	r->id = id;
	r->walked = 0;
	r->ip = ip;
	r->sp = sp;
	r->fp = 0;
	__builtin_memset(r->entries, 0, sizeof(r->entries));
	copy_words(r, sp);
	bpf_ringbuf_submit(r, ring_flags(&rare));
	bpf_map_update_elem(&stack_owners, &tgid, &one, BPF_ANY);
	return id;
}

#endif
