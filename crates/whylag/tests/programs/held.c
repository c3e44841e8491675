/*
 * held WHAT: three threads take turns with one lock for a second. Whoever has it does one thing:
 *
 *     sleep   sleeps for 2 ms
 *     timed   waits for 2 ms for a condition that never comes, as Java's Thread.sleep
 *     select  waits for 2 ms for none of no descriptors, as sleep of Ruby and Perl
 *     unanswered  asks a socket of datagrams that nobody reads, and waits for an answer for 2 ms
 *     cpu     computes for 2 ms of its CPU time
 *     disk    writes 64 KiB to a file here and waits until the disk has it
 *     chain   takes a second lock, whose holder, a fourth thread, sleeps for 2 ms with it
 *     answer  asks a process over a socket, which sleeps for 2 ms before it answers
 *
 * Prints what each thread measured around the call that takes the lock, summed: `waited_ns=`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOLDERS 3
#define HOLD_NS 2000000L
#define LENGTH_NS 1000000000ULL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static uint64_t deadline, waited[HOLDERS];
static int file, connection;
static char block[65536];

static uint64_t clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_now(CLOCK_MONOTONIC);
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void hold_sleep(void)
{
	pause_ns(HOLD_NS);
}

static void hold_timed(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += HOLD_NS;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&own);
	pthread_cond_timedwait(&never, &own, &until);
	pthread_mutex_unlock(&own);
}

static void hold_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ .tv_usec = HOLD_NS / 1000 });
}

static void hold_unanswered(void)
{
	struct pollfd answer = { .fd = connection, .events = POLLIN };

	if (send(connection, "?", 1, 0) != 1 ||
	    ppoll(&answer, 1, &(struct timespec){ .tv_nsec = HOLD_NS }, NULL))
		abort();
}

/* Its name is all that is needed of the other one: it reads nothing. */
static void connect_to_nobody(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int nobody = socket(AF_INET, SOCK_DGRAM, 0);

	connection = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(nobody, (struct sockaddr *)&address, length) ||
	    getsockname(nobody, (struct sockaddr *)&address, &length) ||
	    connect(connection, (struct sockaddr *)&address, length))
		abort();
}

static void hold_cpu(void)
{
	uint64_t until = clock_now(CLOCK_THREAD_CPUTIME_ID) + HOLD_NS;

	while (clock_now(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void hold_disk(void)
{
	if (pwrite(file, block, sizeof block, 0) < 0 || fsync(file))
		abort();
}

static void hold_chain(void)
{
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
}

static void hold_answer(void)
{
	char byte = 1;

	if (write(connection, &byte, 1) != 1 || read(connection, &byte, 1) != 1)
		abort();
}

static void (*hold)(void);

static void *take_turns(void *number)
{
	while (now() < deadline) {
		uint64_t began = now();

		pthread_mutex_lock(&lock);
		waited[(intptr_t)number] += now() - began;
		hold();
		pthread_mutex_unlock(&lock);
		pause_ns(100000); /* so that the lock goes to one that waits */
	}
	return NULL;
}

static void *have_second(void *unused)
{
	(void)unused;
	while (now() < deadline) {
		pthread_mutex_lock(&second);
		pause_ns(HOLD_NS);
		pthread_mutex_unlock(&second);
		pause_ns(50000);
	}
	return NULL;
}

/* A process that answers by a name that nobody else has, and ends with its client. */
static void start_server(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd;
	char byte;

	snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "whylag-held-%d", getpid());
	if (bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 1))
		abort();
	if (fork()) {
		connection = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(connection, (struct sockaddr *)&name, sizeof name))
			abort();
		return;
	}
	prctl(PR_SET_NAME, "answering");
	fd = accept(listener, NULL, NULL);
	while (read(fd, &byte, 1) == 1) {
		pause_ns(HOLD_NS);
		if (write(fd, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t threads[HOLDERS + 1];
	char path[] = "held.XXXXXX";
	uint64_t sum = 0;
	int count = HOLDERS;

	file = mkstemp(path);
	unlink(path);
	deadline = now() + LENGTH_NS;
	if (!strcmp(what, "sleep"))
		hold = hold_sleep;
	else if (!strcmp(what, "timed"))
		hold = hold_timed;
	else if (!strcmp(what, "select"))
		hold = hold_select;
	else if (!strcmp(what, "unanswered"))
		hold = hold_unanswered;
	else if (!strcmp(what, "cpu"))
		hold = hold_cpu;
	else if (!strcmp(what, "disk"))
		hold = hold_disk;
	else if (!strcmp(what, "chain"))
		hold = hold_chain;
	else if (!strcmp(what, "answer"))
		hold = hold_answer;
	else
		return 2;
	if (hold == hold_answer)
		start_server();
	if (hold == hold_unanswered)
		connect_to_nobody();
	if (hold == hold_chain)
		pthread_create(&threads[count++], NULL, have_second, NULL);
	for (intptr_t i = 0; i < HOLDERS; i++)
		pthread_create(&threads[i], NULL, take_turns, (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < HOLDERS; i++)
		sum += waited[i];
	printf("waited_ns=%llu\n", (unsigned long long)sum);
	if (hold == hold_answer) {
		close(connection);
		wait(NULL);
	}
	return 0;
}
