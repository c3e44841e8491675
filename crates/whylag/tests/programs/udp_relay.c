/*
 * udp_relay HOW SECONDS: a server of UDP that sends each packet it gets on to a socket which nobody reads. HOW is
 *   named: from one socket that has no peer; connected: from a new one with a peer for each;
 *   answers: as named, but it answers whoever asked at once;
 *   several: from one socket to two peers in turn, of which the second one answers;
 *   waits: as named, but it serves nobody, and waits for each answer for 100 ms.
 * Its clients are another process, as is who answers. Prints how many packets it sent on, and where to.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define FIRST_PORT 20000 /* below those that the kernel gives out */

static char byte = 'x';

static void must(int done)
{
	if (!done) {
		perror("udp_relay");
		exit(1);
	}
}

static int bound(struct sockaddr_in *at, unsigned int port)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (bind(fd, (struct sockaddr *)at, length) && port)
		at->sin_port = htons(++port);
	must(!getsockname(fd, (struct sockaddr *)at, &length));
	return fd;
}

static void send_to(int fd, const struct sockaddr_in *to)
{
	must(sendto(fd, &byte, 1, 0, (const struct sockaddr *)to, sizeof(*to)) == 1);
}

/* Each asks once. */
static void be_clients(const struct sockaddr_in *server, long seconds)
{
	for (uint64_t end = now_ns() + seconds * 1000000000UL; now_ns() < end; sleep_ms(20)) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		send_to(fd, server);
		close(fd);
	}
}

static void answer_all(int fd)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);

	while (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &length) == 1)
		send_to(fd, &from);
}

static unsigned long wait_in_vain(int out, const struct sockaddr_in *to, long seconds)
{
	struct timeval patience = { .tv_usec = 100000 };
	unsigned long packets = 0;

	must(!setsockopt(out, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	for (uint64_t end = now_ns() + seconds * 1000000000UL; now_ns() < end; packets++) {
		send_to(out, to);
		must(recv(out, &byte, 1, 0) < 0);
	}
	return packets;
}

static void relay(const char *how, int out, const struct sockaddr_in *to)
{
	int fd = out;

	if (!strcmp(how, "connected")) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		must(!connect(fd, (const struct sockaddr *)to, sizeof(*to)) && send(fd, &byte, 1, 0) == 1);
		close(fd);
	} else {
		send_to(fd, to);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at, any, from, peers[2];
	int server = bound(&at, FIRST_PORT + getpid() % 10000), out = bound(&any, 0);
	int silent = bound(&peers[0], 0), answering = bound(&peers[1], 0);
	struct timeval patience = { .tv_usec = 300000 };
	socklen_t length = sizeof(from);
	unsigned long packets = 0;
	int several;

	must(argc == 3 && silent >= 0);
	if (!strcmp(argv[1], "waits")) {
		packets = wait_in_vain(out, &peers[0], atol(argv[2]));
		printf("packets=%lu silent=%u\n", packets, ntohs(peers[0].sin_port));
		return 0;
	}
	several = !strcmp(argv[1], "several");
	for (int child = 0; child < 2; child++) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (child)
				answer_all(answering);
			else
				be_clients(&at, atol(argv[2]));
			_exit(0);
		}
	}
	must(!setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	while (recvfrom(server, &byte, 1, 0, (struct sockaddr *)&from, &length) == 1) {
		relay(argv[1], out, &peers[several && packets % 2]);
		packets++;
		if (!strcmp(argv[1], "answers"))
			send_to(server, &from);
		if (several)
			recv(out, &byte, 1, MSG_DONTWAIT);
	}
	printf("packets=%lu silent=%u\n", packets, ntohs(peers[0].sin_port));
	return 0;
}
