/*
 * unanswered HEARD SECONDS: a client sends to a server that answers so many times and never again,
 * prints "asked ADDRESS" and waits so long for the answer. Another of its connections has had its
 * answer, and on a third the server is the one that sends.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_US 20000 /* longer than a clock tick of the kernel */

static struct sockaddr_in at = { .sin_family = AF_INET };
static char byte = 'x';

static void must(int done)
{
	if (!done) {
		perror("unanswered");
		exit(1);
	}
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static void transfer(int from, int to)
{
	usleep(PAUSE_US);
	must(write(from, &byte, 1) == 1 && read(to, &byte, 1) == 1);
}

int main(int argc, char **argv)
{
	int listening = socket(AF_INET, SOCK_STREAM, 0), heard = argc > 1 ? atoi(argv[1]) : 0;
	socklen_t length = sizeof(at);
	int asking, answered, told, asked[3];
	struct timeval patience = { .tv_sec = argc > 2 ? atoi(argv[2]) : 1 };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(listening, (struct sockaddr *)&at, sizeof(at)) && !listen(listening, 8));
	must(!getsockname(listening, (struct sockaddr *)&at, &length));
	asking = connected();
	must(!setsockopt(asking, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	asked[0] = accept(listening, NULL, NULL);
	answered = connected();
	asked[1] = accept(listening, NULL, NULL);
	told = connected();
	asked[2] = accept(listening, NULL, NULL);
	if (!fork()) { /* keeps the server's ends open */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	transfer(answered, asked[1]);
	transfer(asked[1], answered);
	transfer(asked[2], told);
	for (int i = 0; i < heard; i++) {
		transfer(asking, asked[0]);
		transfer(asked[0], asking);
	}
	for (int i = 0; i < 3; i++)
		close(asked[i]);
	close(listening);
	usleep(PAUSE_US);
	must(write(asking, &byte, 1) == 1);
	printf("asked 127.0.0.1:%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return read(asking, &byte, 1) >= 0; /* nothing comes */
}
