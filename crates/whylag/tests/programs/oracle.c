/*
 * Threads that run, call, fault and wait for half a second, each named after what it does, and the
 * clocks that know of it without whylag. Prints for each NAME:
 *
 *     life.NAME    CLOCK_MONOTONIC from its first instruction to its last, and what it waited for
 *                  a CPU before
 *     cpu.NAME     CLOCK_THREAD_CPUTIME_ID at its end
 *     ran.NAME, queued.NAME    /proc/PID/task/TID/schedstat, read by the main thread
 *     asleep.NAME  sum over its waits: CLOCK_MONOTONIC around the call, without what it ran or
 *                  was ready to
 *     user.NAME    user time of getrusage(RUSAGE_THREAD)
 *
 * and stat.process, utime and stime of /proc/PID/stat together.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define MS 1000000ULL
#define ROUND_MS 10
#define ROUNDS 50

struct thread {
	const char *name;
	void (*work)(struct thread *);
	pthread_t id;
	_Atomic pid_t tid;
	uint64_t life, cpu, ran, queued, asleep, user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fed = PTHREAD_COND_INITIALIZER;
static int portions, food[2], sink[2];
static atomic_int at_work;
static atomic_bool is_over;

struct wait {
	uint64_t began, ran, queued;
};

static struct wait wait_begins(void)
{
	struct wait wait = { .queued = run_queue_ns(), .ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) };

	wait.began = now_ns();
	return wait;
}

static void wait_ends(struct thread *self, struct wait wait)
{
	uint64_t took = now_ns() - wait.began;
	uint64_t ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - wait.ran;

	self->asleep += took - ran - (run_queue_ns() - wait.queued);
}

static void user(struct thread *self)
{
	(void)self;
	spin_cpu_ns(300 * MS);
}

static void calls(struct thread *self)
{
	static char block[65536];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)self;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < 150 * MS)
		if (read(zero, block, sizeof block) < 0)
			abort();
}

static void faults(struct thread *self)
{
	const size_t length = 4 << 20;

	(void)self;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < 150 * MS) {
		char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		munmap(memory, length);
	}
}

static void bursts(struct thread *self)
{
	for (int i = 0; i < ROUNDS; i++) {
		spin_cpu_ns(2 * MS);
		struct wait wait = wait_begins();
		sleep_ms(ROUND_MS - 2);
		wait_ends(self, wait);
	}
}

static void pipe_read(struct thread *self)
{
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		struct wait wait = wait_begins();
		if (read(food[0], &byte, 1) != 1)
			abort();
		wait_ends(self, wait);
	}
}

static void pipe_write(struct thread *self)
{
	char page[4096];

	memset(page, 'p', sizeof page);
	for (int i = 0; i < ROUNDS; i++) {
		struct wait wait = wait_begins();
		if (write(sink[1], page, sizeof page) < 0)
			abort();
		wait_ends(self, wait);
	}
}

static void futex(struct thread *self)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		struct wait wait = wait_begins();
		while (!portions)
			pthread_cond_wait(&fed, &lock);
		wait_ends(self, wait);
		portions--;
		pthread_mutex_unlock(&lock);
	}
}

/* Ends the waits of the three above, one of each every 10 ms. */
static void feeder(struct thread *self)
{
	char page[4096];

	for (int i = 0; i < ROUNDS; i++) {
		struct wait wait = wait_begins();
		sleep_ms(ROUND_MS);
		wait_ends(self, wait);
		if (write(food[1], "f", 1) != 1 || read(sink[0], page, sizeof page) < 0)
			abort();
		pthread_mutex_lock(&lock);
		portions++;
		pthread_cond_signal(&fed);
		pthread_mutex_unlock(&lock);
	}
}

static void *live(void *argument)
{
	struct thread *self = argument;
	uint64_t born = now_ns() - run_queue_ns();
	struct rusage usage;

	prctl(PR_SET_NAME, self->name);
	self->tid = gettid();
	self->work(self);
	at_work--;
	while (!is_over)
		sleep_ms(5);
	getrusage(RUSAGE_THREAD, &usage);
	self->user = (uint64_t)usage.ru_utime.tv_sec * 1000 * MS + (uint64_t)usage.ru_utime.tv_usec * 1000;
	self->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	self->life = now_ns() - born;
	return NULL;
}

static void read_schedstat(struct thread *thread)
{
	unsigned long long ran, queued;
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", getpid(), thread->tid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu %llu", &ran, &queued) != 2)
		abort();
	fclose(file);
	thread->ran = ran;
	thread->queued = queued;
}

static uint64_t process_ns(void)
{
	unsigned long user_ticks, system_ticks;
	FILE *file = fopen("/proc/self/stat", "re");

	if (!file || fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			    &user_ticks, &system_ticks) != 2)
		abort();
	fclose(file);
	return (user_ticks + system_ticks) * (1000 * MS / (uint64_t)sysconf(_SC_CLK_TCK));
}

#define THREAD(what) { .name = #what, .work = what }

int main(void)
{
	static struct thread threads[] = { THREAD(user), THREAD(calls), THREAD(faults), THREAD(bursts),
					   THREAD(pipe_read), THREAD(pipe_write), THREAD(futex),
					   THREAD(feeder) };
	const int count = sizeof threads / sizeof *threads;

	if (pipe(food) || pipe(sink) || fcntl(sink[1], F_SETPIPE_SZ, 4096) < 0)
		abort();
	at_work = count;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i].id, NULL, live, &threads[i]);
	while (at_work)
		sleep_ms(5);
	for (int i = 0; i < count; i++)
		read_schedstat(&threads[i]);
	is_over = true;
	for (int i = 0; i < count; i++) {
		struct thread *t = &threads[i];

		pthread_join(t->id, NULL);
		printf("life.%s=%lu cpu.%s=%lu ran.%s=%lu queued.%s=%lu asleep.%s=%lu user.%s=%lu\n", t->name,
		       t->life, t->name, t->cpu, t->name, t->ran, t->name, t->queued, t->name, t->asleep,
		       t->name, t->user);
	}
	printf("stat.process=%lu\n", process_ns());
	return 0;
}
