/* Healthy: four threads take a mutex every 5 ms for 20 us; now and then one waits for another. */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void work(int id)
{
	for (uint64_t next = now_ns() + (uint64_t)id * MILLISECOND; going(); next += 5 * MILLISECOND) {
		sleep_until(next);
		compute_ms(0.2);
		pthread_mutex_lock(&lock);
		compute_ms(0.02);
		pthread_mutex_unlock(&lock);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("worker", 4, work);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
