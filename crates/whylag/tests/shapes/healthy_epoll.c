/*
 * Healthy: a server on loopback waits in epoll for six clients, each of which sends a request every
 * 20 ms and gets its answer after 0.1 ms of computing.
 */
#include "shape.h"
#include <sys/epoll.h>

#define CLIENTS 6

static int door;

static void answer_all(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = CLIENTS;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = door };

	epoll_ctl(epoll, EPOLL_CTL_ADD, door, &event);
	while (left && epoll_wait(epoll, &event, 1, -1) == 1) {
		char byte;
		int fd = event.data.fd;

		if (fd == door) {
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = accept(door, NULL, NULL) };
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (read(fd, &byte, 1) == 1) {
			compute_ms(0.1);
			if (write(fd, &byte, 1) != 1)
				die("the client is gone");
		} else {
			close(fd);
			left--;
		}
	}
}

static void request(int id)
{
	int server = enter(door);
	uint64_t next = now_ns() + (uint64_t)id * 3 * MILLISECOND;

	for (; going(); next += 20 * MILLISECOND) {
		sleep_until(next);
		ask(server);
	}
	close(server);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_threads("server", 1, answer_all);
	start_threads("client", CLIENTS, request);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
