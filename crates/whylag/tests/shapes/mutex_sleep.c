/* Six handlers share a mutex; whoever has it sleeps for 5 ms (a client library that retries). */
#include "shape.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

static void handle(int id)
{
	while (going()) {
		lock_timed(&registry, 0);
		sleep_ms(5);
		pthread_mutex_unlock(&registry);
		sleep_ms(2 + id % 3);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("handler", 6, handle);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "handler-", "sleep" });
}
