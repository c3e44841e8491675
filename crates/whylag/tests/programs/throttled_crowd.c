/*
 * throttled_crowd SECONDS: two threads on each of two CPUs work for 2 ms and sleep for 3, in a cgroup of
 * 30 ms of CPU time in each 100. When that is used up, one of two runs on a CPU, and the other waits
 * behind it or is asleep, and woken.
 *
 * throttled_ns of the last line is what the kernel has of the cgroup's queues, once for each of the
 * threads that wait in one. To be run as root where nothing else is in the way of a cgroup.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CPUS	2
#define THREADS	(2 * CPUS)
#define GROUP	"/sys/fs/cgroup/throttled-crowd"

static double end;
static unsigned long long lost[THREADS];

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

/* How long this thread was ready without a CPU, ns. */
static unsigned long long queued_ns(void)
{
	unsigned long long ns = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (!file || fscanf(file, "%*u %llu", &ns) != 1)
		exit(1);
	fclose(file);
	return ns;
}

static void *work(void *number)
{
	long id = (long)number;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(id % CPUS, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		exit(1);
	while (seconds_of(CLOCK_MONOTONIC) < end) {
		double begun = seconds_of(CLOCK_THREAD_CPUTIME_ID);

		while (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begun < 0.002 &&
		       seconds_of(CLOCK_MONOTONIC) < end)
			;
		usleep(3000);
	}
	lost[id] = queued_ns();
	return NULL;
}

/* Of all queues of the cgroup. */
static unsigned long long throttled_us(void)
{
	unsigned long long us = 0;
	char line[128];
	FILE *file = fopen(GROUP "/cpu.stat", "r");

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "throttled_usec %llu", &us);
	return us;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	unsigned long long sum = 0;
	pthread_t threads[THREADS];

	put("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
	if (mkdir(GROUP, 0755)) {
		perror(GROUP);
		return 1;
	}
	put(GROUP "/cpu.max", "30000 100000");
	put(GROUP "/cgroup.procs", "0");
	end = seconds_of(CLOCK_MONOTONIC) + seconds;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += lost[i];
	}
	printf("truth: lost_ns=%llu wall_ns=%.0f throttled_ns=%llu\n", sum, THREADS * seconds * 1e9,
	       throttled_us() * 1000 * THREADS / CPUS);
	put("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(GROUP);
	return 0;
}
