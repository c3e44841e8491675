/*
 * naps THREADS: that many threads, each asleep for half a millisecond again and again, until it is
 * killed: many waits for little CPU time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void *nap(void *unused)
{
	const struct timespec half = { .tv_nsec = 500000 };

	(void)unused;
	for (;;)
		nanosleep(&half, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 1; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, nap, NULL))
			return 1;
	}
	nap(NULL);
}
