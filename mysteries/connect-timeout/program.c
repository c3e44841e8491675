/*
 * Four workers look something up at a server, for each with a connection of its own, which is given 1.5 s to
 * be made.
 *
 * Faulty: the server's listening socket drops all packets whose time to live is below 255, which is that of none,
 * as a firewall does that does not refuse them. Fixed (-DFIXED): it takes them, and the server hangs up at once.
 *
 * lost_ns: how long connects took beyond 10 ms.
 */
#include "../loopback.h"
#include "../measure.h"

#define WORKERS 4
#define BACKLOG 128
#define LIMIT_MS 1500
#define PAUSE_NS (2 * MILLISECOND)
#define ORDINARY (10 * MILLISECOND)

static struct sockaddr_in address;
static int listener;

#ifndef FIXED
static void drop_all_packets(void)
{
	/* Only from next to it (RFC 5082): packets of the loopback device begin with 64. */
	int least = 255;

	if (setsockopt(listener, IPPROTO_IP, IP_MINTTL, &least, sizeof least))
		die("cannot set the least time to live");
}
#endif

static void serve(void *unused)
{
	/* No TIME_WAIT: the ports are to last. */
	struct linger at_once = { .l_onoff = 1 };

	(void)unused;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(fd);
	}
}

static void look_up(int id, struct account *mine)
{
	struct timeval limit = { .tv_sec = LIMIT_MS / 1000, .tv_usec = LIMIT_MS % 1000 * 1000 };

	(void)id;
	while (running()) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		uint64_t began = now_ns();

		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
		mine->ops += connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
		count_loss(mine, above(now_ns() - began, ORDINARY));
		close(fd);
		sleep_until(now_ns() + PAUSE_NS);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t server;

	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, BACKLOG))
		die("cannot listen");
#ifndef FIXED
	drop_all_packets();
#endif
	server = start_process("server", serve, NULL);
	close(listener);
	sum = run_workers(WORKERS, "worker", look_up, seconds);
	end_process(server);
	printf("%llu connections\n", (unsigned long long)sum.ops);
	print_truth(&sum, "%s", "");
	return 0;
}
