/*
 * Three threads call all the time, for as many seconds as the first argument says: "asker" getppid(), on
 * one CPU, in bursts of as many as the second argument says, 5,000 times a second, "napper" pselect(), which
 * sleeps for 5 ms, "sleeper" poll(), which sleeps for 25 ms. Prints how often each called, and how long the
 * median call of the latter two took.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define CALLS_MAX 100000

static uint64_t end_ns;

struct caller {
	const char *thread, *name;
	void (*call)(void);
	uint64_t calls, ns[CALLS_MAX];
};

static void nap(void)
{
	struct timespec time = { 0, 5000000 };

	pselect(0, NULL, NULL, NULL, &time, NULL);
}

static void sleep_long(void) { poll(NULL, 0, 25); }

static void *call_all_the_time(void *caller)
{
	struct caller *mine = caller;

	pthread_setname_np(pthread_self(), mine->thread);
	while (now_ns() < end_ns && mine->calls < CALLS_MAX) {
		uint64_t began = now_ns();

		mine->call();
		mine->ns[mine->calls++] = now_ns() - began;
	}
	return NULL;
}

static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static uint64_t burst;

static void *ask(void *calls)
{
	pthread_setname_np(pthread_self(), "asker");
	stay_here();
	while (now_ns() < end_ns) {
		uint64_t pause = now_ns() + 200000;

		for (uint64_t i = 0; i < burst; i++)
			syscall(SYS_getppid);
		*(uint64_t *)calls += burst;
		while (now_ns() < pause)
			;
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct caller callers[] = {
		{ .thread = "napper", .name = "pselect6", .call = nap },
		{ .thread = "sleeper", .name = "poll", .call = sleep_long },
	};
	pthread_t asker, threads[2];
	uint64_t asked = 0;

	if (argc != 3)
		return 2;
	burst = strtoull(argv[2], NULL, 10);
	end_ns = now_ns() + strtoull(argv[1], NULL, 10) * 1000000000;
	pthread_create(&asker, NULL, ask, &asked);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, call_all_the_time, &callers[i]);
	pthread_join(asker, NULL);
	printf("calls.getppid=%lu\n", asked);
	for (int i = 0; i < 2; i++) {
		struct caller *one = &callers[i];

		pthread_join(threads[i], NULL);
		qsort(one->ns, one->calls, sizeof(one->ns[0]), ascending);
		printf("calls.%s=%lu median.%s=%lu\n", one->name, one->calls, one->name,
		       one->ns[one->calls / 2]);
	}
	return 0;
}
