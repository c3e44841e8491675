/* Sockets, and those who read them (sockets.sh puts the parts together):
 *
 *   sockets hold NUMBER COUNT   has COUNT sockets: 2 of 5 AF_UNIX (pairs), 2 of 5 UDP (bound), 1 of 5
 *                               TCP (connected); NUMBER keeps the addresses of several holders
 *                               apart. Says "ready", then sleeps until it is killed.
 *   sockets work OWN SECONDS    has OWN sockets of its own, says "ready", waits for a line, then
 *                               makes and closes one 4,000 times a second, in turn AF_UNIX, UDP and
 *                               TCP, each with bind(), and TCP with listen(); prints median, 99th
 *                               percentile and maximum of the time to make one, us, and waits for
 *                               another line
 *   sockets repeat COMMAND...   starts COMMAND every 20 ms, or as often as it can, output thrown
 *                               away; at SIGTERM prints how often a second, and the mean wall time
 *                               of one, ms */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PORT 1024
#define PER_SECOND 4000
#define REPEAT_NS 20000000ull

extern char **environ;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* 127.0.KIND.NUMBER:PORT */
static struct sockaddr_in address(int kind, int number, int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (kind << 8) + number),
	};
}

static int bound(int type, struct sockaddr_in to)
{
	int one = 1, fd = socket(AF_INET, type, 0);

	if (fd < 0)
		fail("socket");
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("bind");
	return fd;
}

static int listening(struct sockaddr_in to)
{
	int fd = bound(SOCK_STREAM, to);

	if (listen(fd, 128))
		fail("listen");
	return fd;
}

/* --- hold ----------------------------------------------------------------------------------- */

static void hold_some(int number, long count)
{
	struct sockaddr_in server = address(2, number, FIRST_PORT);
	int listener = listening(server), pair[2];
	long i;

	/* With something in the queue: the recorder reports how often it looked. */
	for (i = 0; i < count * 2 / 5; i += 2)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "x", 1) != 1)
			fail("socketpair");
	for (i = 0; i < count * 2 / 5; i++)
		bound(SOCK_DGRAM, address(1, number, FIRST_PORT + i));
	for (i = 0; i + 1 < count / 5; i += 2) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) ||
		    accept(listener, NULL, NULL) < 0)
			fail("connecting");
	}
}

/* --- work ----------------------------------------------------------------------------------- */

static int make_one(int kind)
{
	struct sockaddr_un nameless = { .sun_family = AF_UNIX };
	int fd;

	if (kind == 1)
		return bound(SOCK_DGRAM, address(3, 1, FIRST_PORT));
	if (kind == 2)
		return listening(address(3, 1, FIRST_PORT));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	/* So short an address has the kernel choose a name. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&nameless, sizeof(sa_family_t)))
		fail("AF_UNIX");
	return fd;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void work(long own, long seconds)
{
	long i, count = seconds * PER_SECOND;
	uint64_t *took = calloc(count, sizeof(*took)), due, began;
	char line[8];

	if (!took)
		fail("memory");
	hold_some(250, own);
	say_ready();
	if (!fgets(line, sizeof(line), stdin))
		fail("waiting for a line");
	due = now_ns();
	for (i = 0; i < count; i++) {
		int fd;

		/* No sleep: waking up would be in the figures. */
		while ((began = now_ns()) < due)
			;
		fd = make_one(i % 3);
		took[i] = now_ns() - began;
		close(fd);
		due += 1000000000ull / PER_SECOND;
	}
	qsort(took, count, sizeof(*took), by_size);
	printf("%.2f %.2f %.2f\n", took[count / 2] / 1e3, took[count * 99 / 100] / 1e3,
	       took[count - 1] / 1e3);
	fflush(stdout);
	/* Whoever looks is still measured. */
	if (!fgets(line, sizeof(line), stdin))
		fail("waiting for a line");
}

/* --- repeat --------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_over;

static void end(int signal)
{
	(void)signal;
	is_over = 1;
}

static void repeat(char **command)
{
	struct sigaction at_end = { .sa_handler = end };
	posix_spawn_file_actions_t silent;
	uint64_t start = now_ns(), due = start, busy = 0, runs = 0;

	posix_spawn_file_actions_init(&silent);
	posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0);
	sigaction(SIGTERM, &at_end, NULL);
	while (!is_over) {
		struct timespec t = { due / 1000000000, due % 1000000000 };
		uint64_t began;
		int status;
		pid_t pid;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		began = now_ns();
		if (posix_spawnp(&pid, command[0], &silent, NULL, command, environ))
			fail(command[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			exit(1);
		busy += now_ns() - began;
		runs++;
		due += REPEAT_NS;
		if (due < now_ns())
			due = now_ns();
	}
	printf("%.2f %.2f\n", runs * 1e9 / (now_ns() - start), busy / 1e6 / runs);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "hold")) {
		hold_some(atoi(argv[2]), atol(argv[3]));
		say_ready();
		pause();
	} else if (argc == 4 && !strcmp(argv[1], "work")) {
		work(atol(argv[2]), atol(argv[3]));
	} else if (argc > 2 && !strcmp(argv[1], "repeat")) {
		repeat(argv + 2);
	} else {
		fputs("usage: sockets hold NUMBER COUNT | work OWN SECONDS | repeat COMMAND...\n", stderr);
		return 2;
	}
	return 0;
}
