/* threads THREADS ACTIVE PER_SECOND SECONDS: many threads, of which some sleep and wake all the time.
 *
 * A few tokens go round a ring of the active threads; the others only sleep, and not on a futex: the
 * kernel keeps all futex waits of a process in a few lists, which it would have to walk. A thread sleeps on its
 * own futex until a token comes, passes it on and sleeps again, so each pass is one wake-up, one
 * context switch and one sleep that is long (ACTIVE / PER_SECOND seconds, if tokens do not meet)
 * compared with any threshold. Prints what was reached: the threads there are, the passes per
 * second. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Enough to keep every CPU of a small machine busy, few enough to keep the ring in step. */
#define TOKENS 16

struct seat {
	_Atomic uint32_t tokens;
};

static struct seat *seats;
static long ring_size, passes_per_second;
static _Atomic uint64_t passes;
static uint64_t start_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000u, .tv_nsec = ns % 1000000000u };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void give_token(struct seat *seat)
{
	if (atomic_fetch_add(&seat->tokens, 1) == 0)
		syscall(SYS_futex, &seat->tokens, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static __attribute__((noreturn)) void *sit(void *argument)
{
	long mine = (long)argument;

	for (;;) {
		uint64_t due_ns, done;

		while (atomic_load(&seats[mine].tokens) == 0)
			syscall(SYS_futex, &seats[mine].tokens, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		/* When ahead of the rate by more than 1 ms, wait for it. */
		done = atomic_fetch_add(&passes, 1) + 1;
		due_ns = start_ns + done * 1000000000ull / passes_per_second;
		if (due_ns > now_ns() + 1000000)
			sleep_until(due_ns);
		atomic_fetch_sub(&seats[mine].tokens, 1);
		give_token(&seats[(mine + 1) % ring_size]);
	}
}

static __attribute__((noreturn)) void *only_sleep(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	return *text && !*end && value > 0 ? value : 0;
}

int main(int argc, char **argv)
{
	long wanted, created, seconds, i;
	pthread_attr_t attributes;
	pthread_t thread;
	uint64_t ended_ns;

	if (argc != 5 || !(wanted = number(argv[1])) || !(ring_size = number(argv[2])) ||
	    !(passes_per_second = number(argv[3])) || !(seconds = number(argv[4]))) {
		fprintf(stderr, "usage: threads THREADS ACTIVE PER_SECOND SECONDS\n");
		return 2;
	}
	seats = calloc(ring_size, sizeof(*seats));
	if (!seats) {
		fprintf(stderr, "threads: no memory for %ld seats\n", ring_size);
		return 1;
	}
	/* Small stacks without guard pages: one mapping each, for vm.max_map_count. */
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
	pthread_attr_setguardsize(&attributes, 0);
	for (created = 0; created < wanted; created++) {
		int error = pthread_create(&thread, &attributes,
					   created < ring_size ? sit : only_sleep, (void *)created);

		if (error) {
			fprintf(stderr, "threads: only %ld of %ld threads: %s\n", created, wanted,
				strerror(error));
			break;
		}
	}
	if (created < ring_size)
		return 1;
	start_ns = now_ns();
	for (i = 0; i < TOKENS && i < ring_size; i++)
		give_token(&seats[i * ring_size / TOKENS]);
	sleep_until(start_ns + seconds * 1000000000ull);
	ended_ns = now_ns();
	printf("%ld threads, %.0f passes/s\n", created,
	       atomic_load(&passes) * 1e9 / (ended_ns - start_ns));
	return 0;
}
