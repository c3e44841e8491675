/*
 * A server listens for 40 ms, then sleeps for 120 ms without listening, as one that starts again and
 * again does. Two clients whose connections are refused close the socket, sleep for 4 ms and try
 * again with a new one; one of them does not block in connect, and asks the socket what came of it.
 */
#include "shape.h"

static struct sockaddr_in address;

static void come_and_go(void *nothing)
{
	while (going()) {
		int on = 1, door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(door, (void *)&address, sizeof address) || listen(door, 16))
			die("cannot listen");
		sleep_ms(40);
		close(door);
		sleep_ms(120);
	}
}

static bool is_connected(bool blocks)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);
	struct pollfd connecting = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0;

	if (connect(fd, (void *)&address, sizeof address)) {
		error = errno;
		if (error == EINPROGRESS) {
			poll(&connecting, 1, -1);
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
		}
	}
	close(fd);
	return !error;
}

static void order(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		while (!is_connected(id % 2) && going())
			sleep_ms(4);
		wait_ends(wait, 0);
		compute_ms(1);
		sleep_ms(10);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	socklen_t length = sizeof address;
	int door = open_door(AF_INET);

	/* Its port stays free: it is the kernel's choice, for nobody else so soon. */
	if (getsockname(door, (void *)&address, &length))
		die("no such server");
	close(door);
	start_process("billing", come_and_go, NULL);
	start_threads("order", 2, order);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,timer", "billing", "sleep" });
}
