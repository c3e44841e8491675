/* Two threads meet at a barrier in each step: one is there at once, the other computes for 8 ms first. */
#include "shape.h"

static pthread_barrier_t step;
/* Read by both between the two meetings, so that they end in the same step. */
static bool is_last;

static void rate_large(int id)
{
	for (bool last = false; !last;) {
		compute_ms(8);
		is_last = !going();
		pthread_barrier_wait(&step);
		last = is_last;
		pthread_barrier_wait(&step);
	}
}

static void rate_small(int id)
{
	for (bool last = false; !last;) {
		struct wait wait;

		compute_ms(0.2);
		wait = wait_begins();
		pthread_barrier_wait(&step);
		wait_ends(wait, 0);
		last = is_last;
		pthread_barrier_wait(&step);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	pthread_barrier_init(&step, NULL, 2);
	start_threads("large", 1, rate_large);
	start_threads("small", 1, rate_small);
	run_for(seconds);
	join_crew();
	return TRUTH({ "barrier,peer,cpu", "large-", "cpu" });
}
