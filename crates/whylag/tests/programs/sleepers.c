/* sleepers THREADS [MORE]: so many threads, all asleep; SIGUSR1 makes MORE, or one. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleep_for_ever(void *unused)
{
	while (pause())
		;
	return unused;
}

static void make(int threads)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	while (threads-- > 0)
		if (pthread_create(&thread, &small, sleep_for_ever, NULL))
			exit(1);
}

int main(int argc, char **argv)
{
	int signal;
	sigset_t set;

	/* Blocked in all threads; the main thread fetches it. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	make(argc > 1 ? atoi(argv[1]) : 1);
	while (!sigwait(&set, &signal))
		make(argc > 2 ? atoi(argv[2]) : 1);
	return 1;
}
