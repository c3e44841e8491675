/*
 * One thread asks another over a connection of TCP, again and again for as many seconds as the first argument
 * says; each answer takes 2 ms. A third makes 250,000 calls a second meanwhile, which are too many to record all.
 * Prints how often was asked.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

static uint64_t end_ns;
static struct sockaddr_in address = { .sin_family = AF_INET };

static void *answer(void *door)
{
	int fd = accept(*(int *)door, NULL, NULL);
	char byte;

	pthread_setname_np(pthread_self(), "answers");
	while (recv(fd, &byte, 1, 0) == 1) {
		sleep_ms(2);
		if (send(fd, &byte, 1, 0) != 1)
			break;
	}
	return NULL;
}

static void *ask(void *asked)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	pthread_setname_np(pthread_self(), "asks");
	if (connect(fd, (void *)&address, sizeof(address)))
		exit(1);
	while (now_ns() < end_ns && send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1)
		++*(uint64_t *)asked;
	close(fd);
	return NULL;
}

static void *storm(void *unused)
{
	while (now_ns() < end_ns) {
		uint64_t pause = now_ns() + 200000;

		for (int i = 0; i < 50; i++)
			syscall(SYS_getppid);
		while (now_ns() < pause)
			;
	}
	return unused;
}

int main(int argc, char **argv)
{
	void *(*bodies[])(void *) = { answer, ask, storm };
	int door = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(address);
	pthread_t threads[3];
	uint64_t asked = 0;
	void *arguments[] = { &door, &asked, NULL };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (argc != 2 || bind(door, (void *)&address, length) || listen(door, 1) ||
	    getsockname(door, (void *)&address, &length))
		return 2;
	end_ns = now_ns() + strtoull(argv[1], NULL, 10) * 1000000000;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, bodies[i], arguments[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("asked=%lu\n", asked);
	return 0;
}
