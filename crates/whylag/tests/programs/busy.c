/*
 * One thread that does nothing but run, for three quarters of its time in one function, and another
 * that runs for a fifth of its time at most and else sleeps. Each says how long it was in its
 * functions, by the CPU clock of the thread.
 */
#define _GNU_SOURCE
#include "clock.h"
#include <pthread.h>
#include <unistd.h>

#define ROUNDS 100

static uint64_t long_ns, short_ns, seldom_ns;
/* Of each thread: a cache line that goes to and fro between two CPUs makes one slower, and not both alike. */
static __thread volatile uint64_t number;

static __attribute__((noinline)) uint64_t measured(void (*run)(void))
{
	uint64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	run();
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
}

static __attribute__((noinline)) void long_part(void)
{
	for (int i = 0; i < 9000000; i++)
		number = number * 6364136223846793005ULL + 1;
}

static __attribute__((noinline)) void short_part(void)
{
	for (int i = 0; i < 3000000; i++)
		number = number * 6364136223846793005ULL + 1;
}

static __attribute__((noinline)) void seldom(void)
{
	for (int i = 0; i < 1000000; i++)
		number = number * 6364136223846793005ULL + 1;
}

static void *all_the_time(void *unused)
{
	pthread_setname_np(pthread_self(), "all-the-time");
	printf("busy=%d ", gettid());
	for (int i = 0; i < ROUNDS; i++) {
		long_ns += measured(long_part);
		short_ns += measured(short_part);
	}
	return NULL;
}

static void *now_and_then(void *unused)
{
	pthread_setname_np(pthread_self(), "now-and-then");
	printf("idle=%d ", gettid());
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t ran = measured(seldom);

		seldom_ns += ran;
		sleep_ms(ran > 5000000 ? ran * 4 / 1000000 : 20);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, all_the_time, NULL);
	pthread_create(&threads[1], NULL, now_and_then, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("long=%lu short=%lu seldom=%lu\n", long_ns, short_ns, seldom_ns);
	return 0;
}
