/*
 * A CPU for those that wait, and the rest for those that they wait for: so that nobody waits for a
 * CPU, which would be another mystery.
 */
#ifndef MYSTERIES_OWN_CPU_H
#define MYSTERIES_OWN_CPU_H

#include "common.h"
#include <sched.h>

/* One of us gets a CPU to itself, the last one; everything else stays on the rest. */
static cpu_set_t last_cpu;

static inline void divide_cpus(void)
{
	cpu_set_t rest;
	int last = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof rest, &rest))
		die("cannot see the CPUs");
	if (CPU_COUNT(&rest) < 2)
		die("two CPUs are needed: one reads, one waits for it");
	while (!CPU_ISSET(last, &rest))
		last--;
	CPU_SET(last, &last_cpu);
	CPU_CLR(last, &rest);
	if (sched_setaffinity(0, sizeof rest, &rest))
		die("cannot choose CPUs");
}

static inline void move_to_own_cpu(void)
{
	if (sched_setaffinity(0, sizeof last_cpu, &last_cpu))
		die("cannot choose a CPU");
}

#endif
