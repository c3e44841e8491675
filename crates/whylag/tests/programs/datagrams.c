/*
 * datagrams: a child sends 20 datagrams over the loopback, one every 20 ms, and this process waits for
 * each; prints `receiver=`, its process. The kernel delivers a datagram over the loopback in a softirq within the call that sends it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATAGRAMS 20

int main(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(here);
	int receiver = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 0;
	pid_t child;

	if (bind(receiver, (void *)&here, length) || getsockname(receiver, (void *)&here, &length))
		abort();
	child = fork();
	if (!child) {
		int sender = socket(AF_INET, SOCK_DGRAM, 0);

		for (int i = 0; i < DATAGRAMS; i++) {
			usleep(20000);
			if (sendto(sender, &byte, 1, 0, (void *)&here, length) != 1)
				abort();
		}
		_exit(0);
	}
	if (child < 0)
		abort();
	for (int i = 0; i < DATAGRAMS; i++)
		if (recv(receiver, &byte, 1, 0) != 1)
			abort();
	waitpid(child, NULL, 0);
	printf("receiver=%d\n", getpid());
	return 0;
}
