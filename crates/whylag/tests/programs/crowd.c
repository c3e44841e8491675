/*
 * crowd THREADS MS [LATE]: that many threads asleep until the end after MS milliseconds, and
 * LATE more which begin one by one meanwhile and sleep for 20 ms. Prints main=tid and worker-N=tid,
 * then `ready=1`, and late-N=tid as they come.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t ready;
static int is_over;

static void introduce(const char *kind, long number)
{
	char name[16];

	snprintf(name, sizeof name, "%s-%ld", kind, number);
	pthread_setname_np(pthread_self(), name);
	printf("%s=%ld\n", name, syscall(SYS_gettid));
}

static void *worker(void *number)
{
	introduce("worker", (long)number);
	pthread_barrier_wait(&ready);
	pthread_mutex_lock(&mutex);
	while (!is_over)
		pthread_cond_wait(&over, &mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *late(void *number)
{
	introduce("late", (long)number);
	sleep_ms(20);
	return NULL;
}

static pthread_t start(void *(*body)(void *), long number, pthread_attr_t *attributes)
{
	pthread_t thread;

	if (pthread_create(&thread, attributes, body, (void *)number) != 0) {
		fprintf(stderr, "cannot start thread %ld\n", number);
		exit(2);
	}
	return thread;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4, ms = argc > 2 ? atol(argv[2]) : 1000;
	long lates = argc > 3 ? atol(argv[3]) : 0;
	pthread_t *all = calloc((size_t)threads, sizeof *all);
	pthread_attr_t small;

	setvbuf(stdout, NULL, _IOLBF, 1 << 12);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	printf("main=%d\n", getpid());
	for (long i = 0; i < threads; i++)
		all[i] = start(worker, i, &small);
	pthread_barrier_wait(&ready);
	printf("ready=1\n");
	for (long i = 0; i < lates; i++) {
		sleep_ms(ms / lates);
		pthread_join(start(late, i, &small), NULL);
	}
	if (lates == 0)
		sleep_ms(ms);
	pthread_mutex_lock(&mutex);
	is_over = 1;
	pthread_cond_broadcast(&over);
	pthread_mutex_unlock(&mutex);
	for (long i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	return 0;
}
