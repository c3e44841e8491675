/* asks serve N | asks ask N SECONDS: N pairs of processes over TCP on loopback, as PostgreSQL and pgbench are:
 * one asks and polls for the answer, the other reads until there is nothing left and waits with epoll. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in address = { .sin_family = AF_INET };

static void send_at_once(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void serve(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);
	char bytes[512] = "";
	ssize_t got;

	send_at_once(fd);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) != 0) {
		if (got < 0)
			epoll_wait(epoll, &event, 1, -1);
		else if (send(fd, bytes, 300, 0) < 0)
			break;
	}
	_exit(0);
}

static void ask(int seconds)
{
	time_t end = time(NULL) + seconds;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	char bytes[512] = "";
	long asked = 0;

	if (connect(fd, (void *)&address, sizeof(address)))
		_exit(1);
	send_at_once(fd);
	for (; time(NULL) < end && send(fd, bytes, 100, 0) == 100; asked++) {
		poll(&answer, 1, -1);
		recv(fd, bytes, sizeof(bytes), 0);
	}
	printf("asked %ld times\n", asked);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0, door = socket(AF_INET, SOCK_STREAM, 0), fd;

	address.sin_port = htons(7799);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (argc == 3 && !strcmp(argv[1], "serve")) {
		if (bind(door, (void *)&address, sizeof(address)) || listen(door, n))
			return 1;
		for (; n > 0; n--, close(fd)) {
			fd = accept(door, NULL, NULL);
			if (!fork())
				serve(fd);
		}
	} else if (argc == 4 && !strcmp(argv[1], "ask")) {
		for (; n > 0; n--) {
			if (!fork())
				ask(atoi(argv[3]));
		}
	} else {
		fprintf(stderr, "usage: asks serve N | asks ask N SECONDS\n");
		return 2;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
