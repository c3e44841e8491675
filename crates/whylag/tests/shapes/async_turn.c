/*
 * One thread serves six connections by epoll, as runtimes of tasks do. Each request needs what one at a
 * time can have, and has it for 5 ms, until epoll times out; the loop rests meanwhile. Prints how many
 * requests took long: `slow=`.
 */
#include "shape.h"
#include <sys/epoll.h>

#define CLIENTS 6
#define TURN (5 * MILLISECOND)

static int door;
static int slow;
/* Whose requests wait, in the order in which they came; the first one has the turn. */
static int waiting[CLIENTS];
static int waiting_count;
static uint64_t turn_ends;

static void turn_over(void)
{
	char done = '.';

	if (write(waiting[0], &done, 1) != 1)
		die("the client is gone");
	slow++;
	memmove(waiting, waiting + 1, (size_t)--waiting_count * sizeof *waiting);
	turn_ends = now_ns() + TURN;
}

static int rest_ms(void)
{
	uint64_t now = now_ns();

	if (!waiting_count)
		return -1;
	return now < turn_ends ? (int)((turn_ends - now + MILLISECOND - 1) / MILLISECOND) : 0;
}

/* Time that it rests while requests wait behind the one that has the turn is lost to them. */
static int rest(int epoll, struct epoll_event *event)
{
	bool others_wait = waiting_count > 1;
	struct wait wait = wait_begins();
	int n = epoll_wait(epoll, event, 1, rest_ms());

	if (others_wait)
		wait_ends(wait, 0);
	return n;
}

static void answer_all(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = CLIENTS;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = door };

	epoll_ctl(epoll, EPOLL_CTL_ADD, door, &event);
	while (left) {
		int n = rest(epoll, &event), fd = event.data.fd;
		char kind;

		if (n && fd == door) {
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = accept(door, NULL, NULL) };
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (n && read(fd, &kind, 1) == 1) {
			if (!waiting_count)
				turn_ends = now_ns() + TURN;
			waiting[waiting_count++] = fd;
		} else if (n) {
			close(fd);
			left--;
		}
		if (waiting_count && now_ns() >= turn_ends)
			turn_over();
	}
}

static void request(int id)
{
	int fd = enter(door);

	while (going()) {
		ask(fd);
		sleep_ms(4 + 2 * id);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_processes("client", CLIENTS, request);
	start_threads("event-loop", 1, answer_all);
	run_for(seconds);
	join_crew();
	printf("slow=%d\n", slow);
	return TRUTH({ "turn-taking,turn,peer,timer", "event-loop-", "sleep" });
}
