/* Four threads meet at a barrier in each step; three are there at once, one sleeps for 8 ms first. */
#include "shape.h"

static pthread_barrier_t step;
/* Read by all between the two meetings, so that all end in the same step. */
static bool is_last;

static void meet(int cause)
{
	struct wait wait = wait_begins();

	pthread_barrier_wait(&step);
	if (cause >= 0)
		wait_ends(wait, cause);
}

static void straggle(int id)
{
	for (bool last = false; !last;) {
		sleep_ms(8);
		is_last = !going();
		meet(-1);
		last = is_last;
		meet(-1);
	}
}

static void simulate(int id)
{
	for (bool last = false; !last;) {
		compute_ms(0.2);
		meet(0);
		last = is_last;
		meet(-1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	pthread_barrier_init(&step, NULL, 4);
	start_threads("straggler", 1, straggle);
	start_threads("cell", 3, simulate);
	run_for(seconds);
	join_crew();
	return TRUTH({ "barrier,peer,timer", "straggler-", "sleep" });
}
