/*
 * One thread serves six connections on loopback by epoll. Five ask for what takes 0.1 ms, every
 * 4 ms; the sixth asks for a report, for which the loop computes for 15 ms, every 20 ms: all others
 * wait behind it.
 */
#include "shape.h"
#include <sys/epoll.h>

#define QUICK 5

static int door;

static void answer_all(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = QUICK + 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = door };

	epoll_ctl(epoll, EPOLL_CTL_ADD, door, &event);
	while (left && epoll_wait(epoll, &event, 1, -1) == 1) {
		int fd = event.data.fd;
		char kind;

		if (fd == door) {
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = accept(door, NULL, NULL) };
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (read(fd, &kind, 1) == 1) {
			compute_ms(kind == 'r' ? 15 : 0.1);
			if (write(fd, &kind, 1) != 1)
				die("the client is gone");
		} else {
			close(fd);
			left--;
		}
	}
}

static void request(char kind, double pause)
{
	int server = enter(door);

	while (going()) {
		struct wait wait = wait_begins();

		if (write(server, &kind, 1) != 1 || read(server, &kind, 1) != 1)
			die("the server is gone");
		wait_ends(wait, 0);
		sleep_ms(pause);
	}
	close(server);
}

static void ask_quick(int id)
{
	request('q', 4);
}

static void ask_report(int id)
{
	request('r', 5);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_threads("event-loop", 1, answer_all);
	start_threads("quick", QUICK, ask_quick);
	start_threads("report", 1, ask_report);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,cpu", "event-loop-", "cpu" });
}
