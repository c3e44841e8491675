/*
 * Three callers ask a server process by way of a thread that sends for all of them, as ZeroMQ does:
 * each wakes it by an eventfd, and polls another one until there is an answer. That thread waits for all
 * its descriptors by epoll. The server has a thread for each connection, which sleeps for 12 ms with
 * each request.
 */
#include "shape.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define CALLERS 3

static int request[CALLERS], answer[CALLERS], server[CALLERS], door;
/* No caller waits any more. */
static atomic_bool callers_are_done;

static void signal_by(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof one) != sizeof one)
		die("eventfd");
}

static void take(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof count) != sizeof count)
		die("eventfd");
}

static void *answer_one(void *fd)
{
	int client = (int)(intptr_t)fd;
	char byte;

	prctl(PR_SET_NAME, "quotes");
	while (read(client, &byte, 1) == 1) {
		sleep_ms(12);
		if (write(client, &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void serve_quotes(void *nothing)
{
	for (;;) {
		int client = accept(door, NULL, NULL);
		pthread_t thread;

		if (client < 0 || pthread_create(&thread, NULL, answer_one, (void *)(intptr_t)client))
			die("cannot serve");
	}
}

/* Descriptors of requests are even, of answers odd. */
static void send_for_all(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	for (uint32_t i = 0; i < CALLERS; i++) {
		server[i] = enter(door);
		event.data.u32 = 2 * i;
		epoll_ctl(epoll, EPOLL_CTL_ADD, request[i], &event);
		event.data.u32 = 2 * i + 1;
		epoll_ctl(epoll, EPOLL_CTL_ADD, server[i], &event);
	}
	while (epoll_wait(epoll, &event, 1, -1) == 1) {
		uint32_t which = event.data.u32 / 2;
		char byte = '?';

		if (event.data.u32 % 2 == 0) {
			take(request[which]);
			if (callers_are_done)
				break;
			if (write(server[which], &byte, 1) != 1)
				die("the server is gone");
		} else {
			if (read(server[which], &byte, 1) != 1)
				die("the server is gone");
			signal_by(answer[which]);
		}
	}
}

static void call(int id)
{
	while (going()) {
		struct pollfd fd = { .fd = answer[id], .events = POLLIN };
		struct wait wait = wait_begins();

		signal_by(request[id]);
		if (poll(&fd, 1, -1) != 1)
			die("poll");
		take(answer[id]);
		wait_ends(wait, 0);
		sleep_ms(3);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	pid_t quotes;

	door = open_door(AF_INET);
	quotes = start_process("quotes", serve_quotes, NULL);
	for (int i = 0; i < CALLERS; i++) {
		request[i] = eventfd(0, EFD_CLOEXEC);
		answer[i] = eventfd(0, EFD_CLOEXEC);
	}
	start_threads("sender", 1, send_for_all);
	start_threads("caller", CALLERS, call);
	run_for(seconds);
	for (int i = 1; i <= CALLERS; i++)
		pthread_join(crew[i].thread, NULL);
	callers_are_done = true;
	signal_by(request[0]);
	pthread_join(crew[0].thread, NULL);
	end_process(quotes);
	return TRUTH({ "slow-peer", "quotes", "sleep" });
}
