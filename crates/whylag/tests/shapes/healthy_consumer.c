/* Healthy: a sensor is read every 5 ms, and a consumer waits for each value; nobody is late. */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int values;
static bool is_done;

static void put(bool last)
{
	pthread_mutex_lock(&lock);
	values++;
	is_done = last;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void produce(int id)
{
	for (uint64_t next = now_ns(); going(); next += 5 * MILLISECOND) {
		sleep_until(next);
		put(false);
	}
	put(true);
}

static void consume(int id)
{
	for (bool last = false; !last;) {
		pthread_mutex_lock(&lock);
		while (!values)
			pthread_cond_wait(&not_empty, &lock);
		values = 0;
		last = is_done;
		pthread_mutex_unlock(&lock);
		compute_ms(0.2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("sensor", 1, produce);
	start_threads("consumer", 1, consume);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
