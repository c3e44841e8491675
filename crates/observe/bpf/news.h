/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What a thread that works on a request has to tell others of its process
 * because of it.
 */
#ifndef WHYLAG_NEWS_H
#define WHYLAG_NEWS_H

#include "state.h"

/*
 * `waker` works on a request that it has read itself and not answered yet, in
 * this turn of its loop, or since it has read the answer to a call that it made
 * for it. It has not waited for a turn of its own: nobody had what it gives.
 */
static __always_inline bool has_news(struct thread *waker, u64 slept)
{
	return waker->asked_at && waker->fellow_ns < slept / 16 &&
	       (waker->turn_since <= waker->asked_read || waker->replied >= waker->turn_since);
}

/*
 * A thread of a process lets another one go on. Is it because a request has
 * come? Then nobody worked for that one while it slept, if the request came
 * after it fell asleep: a post that the threads which hold long polls open are
 * told of. Who worked for it, or had a lock or a place in a pool, was there
 * before.
 */
static __always_inline void note_news(struct thread *t, struct thread *waker, u64 now)
{
	u64 slept = now - t->off_since;

	t->news = 0;
	if (waker->tgid != t->tgid)
		return;
	t->fellow_ns += slept;
	if (has_news(waker, slept)) {
		t->news = waker->asked_at;
		if (t->news <= t->off_since)
			return;
		t->told_ns += slept;
		t->told_object = t->object;
	} else if (t->told_object >> 3 == t->object >> 3) {
		t->told_ns = 0;	/* what it was told before was not what it waits for */
	}
}

#endif
