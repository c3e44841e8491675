/*
 * A thousand threads start, live for 40 ms and end; then, for the rest of the time, four sessions
 * share a mutex that is held for 5 ms of sleep.
 */
#include "shape.h"

#define STARTERS 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void start_up(int id)
{
	sleep_ms(40);
}

static void hold(int id)
{
	while (going()) {
		lock_timed(&lock, 0);
		sleep_ms(5);
		pthread_mutex_unlock(&lock);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("starter", STARTERS, start_up);
	for (int i = 0; i < STARTERS; i++)
		pthread_join(crew[i].thread, NULL);
	crew_size = 0;
	start_threads("session", 4, hold);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "session-", "sleep" });
}
