/* A semaphore used as a lock; whoever has it sleeps for 6 ms. */
#include "shape.h"
#include <semaphore.h>

static sem_t device;

static void print_page(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		while (sem_wait(&device))
			;
		wait_ends(wait, 0);
		sleep_ms(6);
		sem_post(&device);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	sem_init(&device, 0, 1);
	start_threads("printer", 5, print_page);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "printer-", "sleep" });
}
