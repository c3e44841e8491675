/*
 * One indexer rebuilds its index for 8 ms at a time with the mutex held, and pauses for 2 ms; four
 * readers need the same mutex for a microsecond every 3 ms. The guilty one never waits.
 */
#include "shape.h"

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static void rebuild(int id)
{
	while (going()) {
		pthread_mutex_lock(&table);
		compute_ms(8);
		pthread_mutex_unlock(&table);
		sleep_ms(2);
	}
}

static void look_up(int id)
{
	while (going()) {
		lock_timed(&table, 0);
		pthread_mutex_unlock(&table);
		sleep_ms(3);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("indexer", 1, rebuild);
	start_threads("reader", 4, look_up);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,cpu", "indexer-", "cpu" });
}
