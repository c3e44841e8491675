/*
 * A pool whose workers wait at a semaphore for jobs, which come in pairs; whoever is at work takes
 * the next job before the one that was woken for it, which looks, and waits on. Half of the jobs
 * make one more. All that wait have nothing to do.
 */
#include "shape.h"
#include <semaphore.h>

static sem_t jobs;
static atomic_int generation[1 << 16];
static atomic_uint first, last;

static void submit(int depth)
{
	generation[last++ & 0xffff] = depth;
	sem_post(&jobs);
}

static void work(int id)
{
	for (;;) {
		while (sem_wait(&jobs))
			;
		if (!going())
			break;
		int depth = generation[first++ & 0xffff];

		compute_ms(0.02);
		if (depth)
			submit(depth - 1);
	}
	sem_post(&jobs);
}

static void dispatch(int id)
{
	while (going()) {
		submit(0);
		submit(1);
		sleep_ms(4);
	}
	sem_post(&jobs);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	sem_init(&jobs, 0, 0);
	start_threads("worker", 4, work);
	start_threads("dispatcher", 1, dispatch);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
