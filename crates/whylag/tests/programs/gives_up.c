/*
 * gives_up ROUNDS: connects to a server that takes connections and never answers, again and again. For each round
 * it asks on one, waits 100 ms for the answer and closes it; on another it sends what has no answer, and after
 * 100 ms a farewell before it closes it. Prints how often it gave up, and where it asked.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

static struct sockaddr_in at = { .sin_family = AF_INET };

static void must(int done)
{
	if (!done) {
		perror("gives_up");
		exit(1);
	}
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static int asks_in_vain(void)
{
	struct timeval patience = { .tv_usec = 100000 };
	int fd = connected(), in_vain;
	char byte = 0;

	must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	must(send(fd, &byte, 1, 0) == 1);
	in_vain = recv(fd, &byte, 1, 0) < 0;
	close(fd);
	return in_vain;
}

static void says_farewell(void)
{
	int fd = connected();
	char byte = 0;

	must(send(fd, &byte, 1, 0) == 1);
	sleep_ms(100);
	must(send(fd, &byte, 1, 0) == 1);
	close(fd);
}

int main(int argc, char **argv)
{
	int listening = socket(AF_INET, SOCK_STREAM, 0), rounds = argc > 1 ? atoi(argv[1]) : 1, given_up = 0;
	socklen_t length = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(listening, (struct sockaddr *)&at, sizeof(at)) && !listen(listening, 128));
	must(!getsockname(listening, (struct sockaddr *)&at, &length));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			must(accept(listening, NULL, NULL) >= 0);
	}
	close(listening);
	for (int i = 0; i < rounds; i++) {
		given_up += asks_in_vain();
		says_farewell();
	}
	printf("given_up=%d port=%u\n", given_up, ntohs(at.sin_port));
	return 0;
}
