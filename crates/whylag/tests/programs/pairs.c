/*
 * A process asks another one over a pair of sockets, whose ends are alike: made by socketpair(), of bytes
 * or of datagrams, or two sockets of UDP that are connected to each other. Both wait: the one for
 * answers, 2 ms each, the other one for requests, 3 ms each.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUESTS 200
#define STOP 'q'

static void sleep_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static int bound(struct sockaddr_in *at)
{
	socklen_t length = sizeof *at;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (void *)at, sizeof *at) || getsockname(fd, (void *)at, &length))
		_exit(1);
	return fd;
}

static void make_pair(const char *kind, int *ends)
{
	struct sockaddr_in at[2];

	if (strcmp(kind, "udp")) {
		if (socketpair(AF_UNIX, strcmp(kind, "bytes") ? SOCK_DGRAM : SOCK_STREAM, 0, ends))
			_exit(1);
		return;
	}
	for (int i = 0; i < 2; i++)
		ends[i] = bound(&at[i]);
	for (int i = 0; i < 2; i++)
		if (connect(ends[i], (void *)&at[!i], sizeof *at))
			_exit(1);
}

static void answer(int fd)
{
	char byte;

	prctl(PR_SET_NAME, "answering");
	while (read(fd, &byte, 1) == 1 && byte != STOP) {
		sleep_us(2000);
		if (write(fd, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	const char stop = STOP;
	char byte = '?';
	int ends[2];

	make_pair(argc > 1 ? argv[1] : "bytes", ends);
	if (!fork())
		answer(ends[1]);
	prctl(PR_SET_NAME, "asking");
	for (int i = 0; i < REQUESTS; i++) {
		sleep_us(3000);
		if (write(ends[0], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			return 1;
	}
	if (write(ends[0], &stop, 1) != 1)
		return 1;
	wait(NULL);
	return 0;
}
