/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What a futex call waits for, as far as its arguments and the program's memory say: a lock, or else.
 */
#ifndef WHYLAG_FUTEXES_H
#define WHYLAG_FUTEXES_H

#include "state.h"

#define FUTEX_WAIT		0
#define FUTEX_LOCK_PI		6
#define FUTEX_WAIT_BITSET	9
#define FUTEX_LOCK_PI2		13
#define FUTEX_CMD_MASK		0x7f
#define FUTEX_WAITERS		0x80000000
#define FUTEX_TID_MASK		0x3fffffff
#define PID_MAX_LIMIT		(1 << 22)	/* include/linux/threads.h */

static __always_inline bool may_be_tid(u32 number)
{
	return number && number <= PID_MAX_LIMIT;
}

/* "Locked, and others wait" in the words of glibc and Rust; musl waits for it elsewhere, too. */
#define LOCKED_WITH_WAITERS	2

/* Who waits for a condition with musl sleeps in a word of its own stack, so far above its top at most. */
#define OWN_FRAMES	1024

/*
 * pthread_join of musl sleeps in the control block of the other thread until it is not joinable (2)
 * any more. The block begins with its own address, and the thread's number comes just before the word
 * and the error number (src/internal/pthread_impl.h since 1.1.23).
 */
struct musl_thread {
	u64 self;
	u64 next_field;		/* never the same: the head of an empty list has its address twice */
	u64 fields[MUSL_FIELDS];
	u32 tid, error;
};

/* Whether the word is that of a thread of musl, which is waited for until it ends. */
static __always_inline bool is_musl_thread(u64 word)
{
	struct musl_thread thread;
	u64 block = word - sizeof(thread);

	if (bpf_probe_read_user(&thread, sizeof(thread), (void *)block))
		return false;
	return thread.self == block && thread.next_field != block && may_be_tid(thread.tid);
}

/*
 * Whether a word says "locked, and others wait": by the value 2 (glibc, Rust), or by the bit that the
 * kernel has for it (FUTEX_WAITERS) and an owner beside it (musl, robust mutexes). A word that is not
 * `readable` is not told from that in which a thread of musl waits to be joined.
 */
static __always_inline bool is_lock_wait(u32 operation, u64 word, u32 value, u64 stack,
					 bool readable)
{
	operation &= FUTEX_CMD_MASK;
	if (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2)
		return true;
	if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
		return false;
	if (value & FUTEX_WAITERS)	/* a semaphore of musl without a count has all bits */
		return may_be_tid(value & FUTEX_TID_MASK);
	return value == LOCKED_WITH_WAITERS && word - stack >= OWN_FRAMES &&
	       !(readable && is_musl_thread(word));
}

/* In bytes from the word that the waiters of a glibc mutex sleep in. */
#define MUTEX_OWNER	8

/*
 * The thread that the lock names as its owner: a lock that hands itself on by priority, or has the bit
 * for waiters, has it in the word, a mutex of glibc beside it. It is the program's memory: whoever uses
 * this sees whether the process has such a thread.
 */
static __always_inline u32 lock_owner(u64 word, u32 operation, u32 value)
{
	bool in_word = (operation & FUTEX_CMD_MASK) == FUTEX_LOCK_PI ||
		       (operation & FUTEX_CMD_MASK) == FUTEX_LOCK_PI2 ||
		       value & FUTEX_WAITERS;
	u32 owner;

	if (bpf_probe_read_user(&owner, sizeof(owner),
				(void *)(in_word ? word : word + MUTEX_OWNER)))
		return 0;
	return owner & FUTEX_TID_MASK;
}

#endif
