/*
 * One thread asks another over a connection of TCP, again and again for as many seconds as the first argument
 * says; each answer takes 2 ms. A third makes 250,000 calls a second meanwhile, which are too many to record all.
 * Prints how often was asked, and how often each of the two waited for the other by the kernel's voluntary switches:
 * on a busy machine many a question is there before the second thread looks for it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

static uint64_t end_ns;
static uint64_t asked, waits_for_answers, waits_for_questions;
static struct sockaddr_in address = { .sin_family = AF_INET };

static uint64_t voluntary_switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		exit(1);
	return usage.ru_nvcsw;
}

static void *answer(void *door)
{
	int fd = accept(*(int *)door, NULL, NULL);
	uint64_t before = voluntary_switches();
	uint64_t sleeps = 0;
	char byte;

	pthread_setname_np(pthread_self(), "answers");
	while (recv(fd, &byte, 1, 0) == 1) {
		sleep_ms(2);
		sleeps++;
		if (send(fd, &byte, 1, 0) != 1)
			break;
	}
	waits_for_questions = voluntary_switches() - before - sleeps;
	return NULL;
}

static void *ask(void *unused)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	pthread_setname_np(pthread_self(), "asks");
	if (connect(fd, (void *)&address, sizeof(address)))
		exit(1);
	waits_for_answers = voluntary_switches();
	while (now_ns() < end_ns && send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1)
		asked++;
	waits_for_answers = voluntary_switches() - waits_for_answers;
	close(fd);
	return unused;
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
	void *arguments[] = { &door, NULL, NULL };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (argc != 2 || bind(door, (void *)&address, length) || listen(door, 1) ||
	    getsockname(door, (void *)&address, &length))
		return 2;
	end_ns = now_ns() + strtoull(argv[1], NULL, 10) * 1000000000;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, bodies[i], arguments[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("asked=%lu waits_for_answers=%lu waits_for_questions=%lu\n", asked, waits_for_answers,
	       waits_for_questions);
	return 0;
}
