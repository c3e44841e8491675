/*
 * What every mystery needs: a clock, a crew of threads that runs for the time asked, and the
 * `truth:` line in which the program says what it knows of its own loss.
 *
 * All times are CLOCK_MONOTONIC nanoseconds. SIGINT and SIGTERM are blocked in all threads and
 * children and taken by the main thread alone, so that ending early and ending in time are the
 * same path: `stopping` is set, the threads return, everything is freed.
 */
#ifndef MYSTERIES_COMMON_H
#define MYSTERIES_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ULL
#define MILLISECOND 1000000ULL
#define MICROSECOND 1000ULL
#define MAX_WORKERS 256

/* What one thread did; main adds the threads up. */
struct account {
	uint64_t ops;     /* units of work finished */
	uint64_t wall_ns; /* life of the thread's loop */
	uint64_t lost_ns; /* what the fault cost, measured around the very operations */
	uint64_t max_ns;  /* the longest single loss */
	uint64_t cpu_ns;  /* running */
	uint64_t runq_ns; /* runnable, but without a CPU: the kernel's own sum (schedstat) */
};

typedef void (*worker_fn)(int id, struct account *mine);

static atomic_bool stopping;

static inline bool running(void)
{
	return !atomic_load_explicit(&stopping, memory_order_relaxed);
}

__attribute__((noreturn, format(printf, 1, 2)))
static inline void die(const char *format, ...)
{
	va_list args;
	int error = errno;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, error ? ": %s\n" : "\n", strerror(error));
	exit(1);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_until(uint64_t when_ns)
{
	struct timespec t = { .tv_sec = when_ns / SECOND, .tv_nsec = when_ns % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static inline void count_loss(struct account *mine, uint64_t lost_ns)
{
	mine->lost_ns += lost_ns;
	if (lost_ns > mine->max_ns)
		mine->max_ns = lost_ns;
}

static inline sigset_t stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

/* Positional argument `index` as a number within [low, high], or `absent` when not given. */
static inline double argument(int argc, char **argv, int index, const char *name,
			      double low, double high, double absent)
{
	char *end;
	double value;

	if (argc <= index)
		return absent;
	value = strtod(argv[index], &end);
	if (end == argv[index] || *end || !(value >= low && value <= high)) {
		fprintf(stderr, "%s: %s must be a number from %g to %g, not \"%s\"\n", argv[0], name,
			low, high, argv[index]);
		exit(2);
	}
	return value;
}

/* Every main begins here: from now on stop signals wait for wait_for_end(), in every thread and
 * child to come. Returns how many seconds to run, the first argument. */
static inline double begin(int argc, char **argv)
{
	sigset_t set = stop_signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return argument(argc, argv, 1, "SECONDS", 0.1, 86400, 3);
}

/*
 * A new file that has no name any more: it goes when the last descriptor does, however the
 * program ends. `fallback` is the directory when TMPDIR is not set.
 */
static inline int nameless_file(const char *fallback)
{
	const char *directory = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!directory || !*directory)
		directory = fallback;
	snprintf(path, sizeof path, "%s/whylag-mystery-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		die("cannot create a file in %s (set TMPDIR)", directory);
	unlink(path);
	return fd;
}

/* Writes `length` bytes of reproducible noise, the stand-in for data. */
static inline void fill_file(int fd, size_t length)
{
	static uint64_t block[32768];
	uint64_t x = 88172645463325252ULL;

	for (size_t done = 0; done < length;) {
		size_t want = length - done < sizeof block ? length - done : sizeof block;
		ssize_t wrote;

		for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		wrote = write(fd, block, want);
		if (wrote <= 0)
			die("cannot write a file of %zu bytes", length);
		done += (size_t)wrote;
	}
}

/* Pure computing in registers, a slow hash of `x`: no memory, no system call. */
static inline uint64_t compute(uint64_t x, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		x ^= x >> 29;
	}
	__asm__ volatile("" : : "r"(x));
	return x;
}

/* How many rounds of compute() take about `ns` here: the best of several, so that a thread
 * next to us does not count. */
static inline uint64_t rounds_for(uint64_t ns)
{
	const uint64_t probe = 200000;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 10; i++) {
		uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		compute(probe, probe);
		uint64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		/* 0 or less: CPU clocks of virtual machines that jump, or a thread that was moved. */
		if ((int64_t)took > 0 && took < best)
			best = took;
	}
	return probe * ns / best + 1;
}

/* Nanoseconds that this thread has so far been runnable without a CPU; 0 if the kernel does
 * not report it. */
static inline uint64_t runq_ns(void)
{
	unsigned long long ran = 0, waited = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	fclose(file);
	return waited;
}

/* A child process named `name` that runs `body` and dies with us at the latest. */
static inline pid_t start_process(const char *name, void (*body)(void *), void *arg)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("cannot fork %s", name);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		prctl(PR_SET_NAME, name);
		body(arg);
		_exit(0);
	}
	return pid;
}

static inline void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Waits until the time is over or somebody asks us to end. Children that end interrupt it. */
static inline void wait_for_end(double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), now;
	sigset_t set = stop_signals();

	while ((now = now_ns()) < end) {
		struct timespec rest = { .tv_sec = (time_t)((end - now) / SECOND),
					 .tv_nsec = (long)((end - now) % SECOND) };

		if (sigtimedwait(&set, NULL, &rest) >= 0)
			break;
	}
	atomic_store(&stopping, true);
}

struct worker {
	pthread_t thread;
	int id;
	const char *name;
	worker_fn body;
	struct account account;
};

static inline void *worker_main(void *argument)
{
	struct worker *self = argument;
	uint64_t began, ran, waited;
	char name[32];

	snprintf(name, sizeof name, "%s-%d", self->name, self->id);
	pthread_setname_np(pthread_self(), name);
	waited = runq_ns();
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	began = now_ns();
	self->body(self->id, &self->account);
	self->account.wall_ns = now_ns() - began;
	self->account.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
	self->account.runq_ns = runq_ns() - waited;
	return NULL;
}

static inline void start_workers(struct worker *workers, int count, const char *name, worker_fn body)
{
	for (int i = 0; i < count; i++) {
		workers[i] = (struct worker){ .id = i, .name = name, .body = body };
		errno = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
		if (errno)
			die("cannot start thread %s-%d", name, i);
	}
}

static inline void add_account(struct account *sum, const struct account *one)
{
	sum->ops += one->ops;
	sum->wall_ns += one->wall_ns;
	sum->lost_ns += one->lost_ns;
	sum->cpu_ns += one->cpu_ns;
	sum->runq_ns += one->runq_ns;
	if (one->max_ns > sum->max_ns)
		sum->max_ns = one->max_ns;
}

/* Waits for the threads and adds their accounts to `sum`. */
static inline void join_workers(struct worker *workers, int count, struct account *sum)
{
	for (int i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		add_account(sum, &workers[i].account);
	}
}

/* The usual whole: `count` threads run `body` for the time asked. */
static inline struct account run_workers(int count, const char *name, worker_fn body, double seconds)
{
	static struct worker workers[MAX_WORKERS];
	struct account sum = { 0 };

	start_workers(workers, count, name, body);
	wait_for_end(seconds);
	join_workers(workers, count, &sum);
	return sum;
}

/* Neither running nor waiting for a CPU. */
static inline uint64_t blocked_ns(const struct account *sum)
{
	uint64_t accounted = sum->cpu_ns + sum->runq_ns;

	return sum->wall_ns > accounted ? sum->wall_ns - accounted : 0;
}

static inline double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* The last line of every mystery. `more` is empty or starts with a blank: " key=value". */
__attribute__((format(printf, 2, 3)))
static inline void print_truth(const struct account *sum, const char *more, ...)
{
	va_list args;

	printf("truth: lost_ns=%llu wall_ns=%llu ops=%llu max_ns=%llu cpu_ns=%llu runq_ns=%llu",
	       (unsigned long long)sum->lost_ns, (unsigned long long)sum->wall_ns,
	       (unsigned long long)sum->ops, (unsigned long long)sum->max_ns,
	       (unsigned long long)sum->cpu_ns, (unsigned long long)sum->runq_ns);
	va_start(args, more);
	vprintf(more, args);
	va_end(args);
	printf("\n");
}

#endif
