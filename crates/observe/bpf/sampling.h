/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Waits that come so often that to look at each of them costs too much.
 */
#ifndef WHYLAG_SAMPLING_H
#define WHYLAG_SAMPLING_H

#include "state.h"

/* 2^20 divided by the golden ratio, odd: threads with numbers side by side are far apart. */
#define THREAD_SHIFT	648055ULL

/*
 * A wait of `ns` that ends now is looked at if a multiple of `period`, a power of two, is in it, and what is
 * found stands for all waits as long: for ten of a tenth of it. In longer ones there always is one. No
 * timer has such a period. The multiples of each thread are shifted by its number, or all that wait at a
 * moment would be looked at together, and the error be larger than is said. For how much it stands, ns; 0:
 * it is not looked at.
 */
static __always_inline u64 stands_for(struct thread *t, u64 ns, u64 period, u64 now)
{
	if (ns >= period)
		return ns;
	return ((now + t->tid * THREAD_SHIFT) & (period - 1)) < ns ? period : 0;
}

#endif
