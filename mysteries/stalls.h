/*
 * A clock for stalls: time that goes on while the thread waits for a CPU is not in it, so that
 * other programs' use of the machine does not count as the fault's.
 */
#ifndef MYSTERIES_STALLS_H
#define MYSTERIES_STALLS_H

#include "common.h"

/* As runq_ns() of common.h, for a thread that asks often: the file stays open. */
static inline uint64_t queued_ns(void)
{
	static __thread int file = -1;
	char text[64];
	ssize_t length;
	char *second;

	if (file < 0)
		file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	length = pread(file, text, sizeof text - 1, 0);
	if (length <= 0)
		return 0;
	text[length] = 0;
	strtoull(text, &second, 10);
	return strtoull(second, NULL, 10);
}

/* Nanoseconds that this thread ran or slept; only differences mean something. */
static inline uint64_t stall_clock(void)
{
	uint64_t queued = queued_ns(), now, before;

	do { /* until nothing came between the two readings */
		before = queued;
		now = now_ns();
		queued = queued_ns();
	} while (queued != before);
	return now - queued;
}

/* Nanoseconds that this thread slept; only differences mean something. */
static inline uint64_t sleep_clock(void)
{
	return stall_clock() - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
