/*
 * Sends for which there is no room, in bursts 60 ms apart: refused ones on a socket, by send and by
 * write, and others that wait. A full pipe and a failing receive are no such sends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BURSTS 8
#define WAITS 5

static int sockets[2];

static void *drain(void *unused)
{
	char bytes[64];

	(void)unused;
	usleep(10000);
	while (recv(sockets[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	return NULL;
}

int main(void)
{
	int refused = 0, failed = 0, pipes[2];
	char byte = 0;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) || pipe2(pipes, O_NONBLOCK))
		return 1;
	usleep(150000); /* until the recorder has seen them */
	while (write(pipes[1], &byte, 1) == 1)
		;
	for (int burst = 0; burst < BURSTS; burst++) {
		while (send(sockets[0], &byte, 1, MSG_DONTWAIT) == 1)
			;
		refused++;
		fcntl(sockets[0], F_SETFL, O_NONBLOCK);
		for (int i = 0; i < 20; i++)
			refused += write(sockets[0], &byte, 1) < 0;
		fcntl(sockets[0], F_SETFL, 0);
		for (int i = 0; i < 20; i++)
			failed += write(pipes[1], &byte, 1) < 0;
		if (burst < WAITS) {
			pthread_t reader;

			pthread_create(&reader, NULL, drain, NULL);
			send(sockets[0], &byte, 1, 0);
			pthread_join(reader, NULL);
		}
		drain(NULL);
		failed += recv(sockets[0], &byte, 1, MSG_DONTWAIT) < 0;
		usleep(50000);
	}
	printf("refused=%d waited=%d bursts=%d failed=%d fd=%d\n", refused, WAITS, BURSTS, failed,
	       sockets[0]);
	return 0;
}
