/* Healthy: three threads each do 0.2 ms of work every 10 ms. */
#include "shape.h"

static void tick(int id)
{
	for (uint64_t next = now_ns(); going(); next += 10 * MILLISECOND) {
		sleep_until(next);
		compute_ms(0.2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("ticker", 3, tick);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
