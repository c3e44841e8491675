/*
 * Healthy: one thread holds six long polls open by epoll, until another client posts something, every
 * 400 ms, or each has waited for 120 ms: then it is told that there was nothing, and asks again.
 */
#include "shape.h"
#include <sys/epoll.h>

#define POLLERS 6
#define TIMEOUT (120 * MILLISECOND)

static int door;
/* Polls in the order in which they came. */
static struct held {
	int fd;
	uint64_t until;
} held[POLLERS];
static int held_count;

static void answer_first(char what)
{
	if (write(held[0].fd, &what, 1) != 1)
		die("the client is gone");
	memmove(held, held + 1, (size_t)--held_count * sizeof *held);
}

static int rest_ms(void)
{
	uint64_t now = now_ns();

	if (!held_count)
		return -1;
	return now < held[0].until ? (int)((held[0].until - now + MILLISECOND - 1) / MILLISECOND) : 0;
}

static void take(int fd, char kind)
{
	if (kind == '?') {
		held[held_count++] = (struct held){ .fd = fd, .until = now_ns() + TIMEOUT };
		return;
	}
	while (held_count)
		answer_first('!');
	if (write(fd, &kind, 1) != 1)
		die("the client is gone");
}

static void answer_all(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = POLLERS + 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = door };

	epoll_ctl(epoll, EPOLL_CTL_ADD, door, &event);
	while (left) {
		int n = epoll_wait(epoll, &event, 1, rest_ms()), fd = event.data.fd;
		char kind;

		if (n && fd == door) {
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = accept(door, NULL, NULL) };
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (n && read(fd, &kind, 1) == 1) {
			take(fd, kind);
		} else if (n) {
			close(fd);
			left--;
		}
		while (held_count && now_ns() >= held[0].until)
			answer_first('-');
	}
}

static void listen_for_posts(int id)
{
	int fd = enter(door);

	while (going()) {
		ask_by_poll(fd, '?');
		sleep_ms(1 + 2 * id);
	}
	close(fd);
}

static void send_posts(int id)
{
	int fd = enter(door);
	uint64_t next = now_ns();

	while (going()) {
		sleep_until(next += 400 * MILLISECOND);
		ask_by_poll(fd, '!');
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_processes("listener", POLLERS, listen_for_posts);
	start_processes("poster", 1, send_posts);
	start_threads("event-loop", 1, answer_all);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
