/*
 * What the timer mysteries share: every tick is printed on a line of its own as `intended_ns
 * actual_ns`, both CLOCK_MONOTONIC.
 */
#ifndef MYSTERIES_TICKS_H
#define MYSTERIES_TICKS_H

#include "common.h"

/* Prints a tick that was intended for `intended_ns` and is served at `actual_ns`. */
static inline void tell_tick(struct account *mine, uint64_t intended_ns, uint64_t actual_ns)
{
	printf("%llu %llu\n", (unsigned long long)intended_ns, (unsigned long long)actual_ns);
	if (actual_ns > intended_ns)
		count_loss(mine, actual_ns - intended_ns);
	mine->ops++;
}

/*
 * Distance of packet `number` of a recorded session from the one before: 1.3 to 30 ms in whole
 * microseconds, half of them below 8.5 ms, and the same in every run.
 */
static inline uint64_t recorded_gap_ns(uint64_t number)
{
	uint64_t x = (number + 1) * 6364136223846793005ULL;
	double part;

	x ^= x >> 29;
	x *= 1442695040888963407ULL;
	part = (double)(x >> 40) / (double)(1 << 24);
	return (uint64_t)(1300 + 28700 * part * part) * MICROSECOND;
}

/* One thread named `name` runs `body`; its lines leave at once. */
static inline struct account run_timers(const char *name, worker_fn body, double seconds)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run_workers(1, name, body, seconds);
}

#endif
