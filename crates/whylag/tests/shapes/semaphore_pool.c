/* A semaphore lets three of ten threads in at a time; each is in for 9 ms of sleep. */
#include "shape.h"
#include <semaphore.h>

static sem_t licences;

static void use(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		while (sem_wait(&licences))
			;
		wait_ends(wait, 0);
		sleep_ms(8 + id % 3);
		sem_post(&licences);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	sem_init(&licences, 0, 3);
	start_threads("tenant", 10, use);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,timer", "tenant-", "sleep" });
}
