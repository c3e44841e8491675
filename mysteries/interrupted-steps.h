/*
 * A thread that has the first CPU to itself and computes, while something else interrupts it there:
 * a neighbour, who is on the second CPU.
 */
#ifndef MYSTERIES_INTERRUPTED_STEPS_H
#define MYSTERIES_INTERRUPTED_STEPS_H

#include "common.h"
#include <sched.h>

#define VICTIM_CPU 0
#define NEIGHBOUR_CPU 1
#define STEP_NS 200
#define GAP_NS MICROSECOND /* a step that took longer was interrupted */

static uint64_t step_rounds;
static _Atomic uint64_t gaps;

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot run on CPU %d (two CPUs are needed)", cpu);
}

/*
 * Short steps of computing, each with a look at the clock. What a step took beyond its ordinary
 * length is time in which the CPU did something else for a while. What the kernel counts as waiting
 * for the CPU is taken out: another thread had it then.
 */
static void work(int id, struct account *mine)
{
	uint64_t x = (uint64_t)id, last, waited;

	pin(VICTIM_CPU);
	waited = runq_ns();
	for (last = now_ns(); running(); mine->ops++) {
		uint64_t now, took;

		x = compute(x, step_rounds);
		now = now_ns();
		took = now - last;
		last = now;
		if (took > GAP_NS) {
			count_loss(mine, took - STEP_NS);
			gaps++;
		}
	}
	waited = runq_ns() - waited;
	mine->lost_ns -= waited < mine->lost_ns ? waited : mine->lost_ns;
}

/* Computes beside a neighbour for as long as the arguments say, and prints what that cost. */
static int compute_beside(const char *name, void (*neighbour)(void *), int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t process;

	step_rounds = rounds_for(STEP_NS);
	process = start_process(name, neighbour, NULL);
	sum = run_workers(1, "worker", work, seconds);
	end_process(process);

	printf("%.0f steps/s\n", (double)sum.ops * 1e9 / (double)sum.wall_ns);
	printf("%llu gaps in the worker's time, %.1f us on average, %.2f ms at worst: %.0f %% of its time\n",
	       (unsigned long long)gaps, (double)sum.lost_ns / (double)(gaps ? gaps : 1) / 1e3,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " gaps=%llu", (unsigned long long)gaps);
	return 0;
}

#endif
