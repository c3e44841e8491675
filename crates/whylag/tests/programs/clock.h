/* Clocks for the programs that measure themselves; all nanoseconds. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Computes until this thread has used `ns` of CPU time. */
static inline void spin_cpu_ns(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	volatile uint64_t x = 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005ULL + 1;
}

/* How long this thread has waited for a CPU since it was born, by the kernel's own count. */
static inline uint64_t run_queue_ns(void)
{
	unsigned long long ran, waited;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file || fscanf(file, "%llu %llu", &ran, &waited) != 2) {
		fprintf(stderr, "no /proc/thread-self/schedstat\n");
		exit(2);
	}
	fclose(file);
	return waited;
}

/*
 * A thread lives from some time between `made` and `began`, both told by the program, to some time
 * between `ended` and its being joined.
 */
struct life {
	uint64_t made_ns, began_ns, ended_ns;
};

/* Called when the thread was joined. */
static inline void print_life(const char *name, const struct life *life)
{
	printf("made.%s=%lu began.%s=%lu ended.%s=%lu joined.%s=%lu\n", name, life->made_ns, name,
	       life->began_ns, name, life->ended_ns, name, now_ns());
}

#endif
