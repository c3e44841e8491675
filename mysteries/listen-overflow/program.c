/*
 * Eight clients connect to a server again and again. It needs 2 ms of computing for each, and
 * hangs up.
 *
 * Faulty: the queue of connections that wait for accept has room for one. When it is full the
 * kernel drops the SYN, and the client tries again after a second. Fixed (-DFIXED): room for 128.
 *
 * lost_ns: how long connects took beyond 10 ms.
 */
#include "../loopback.h"
#include "../measure.h"

#define CLIENTS 8
#define SERVICE_NS (2 * MILLISECOND)
#define ORDINARY (10 * MILLISECOND)
#ifdef FIXED
#define BACKLOG 128
#else
#define BACKLOG 1
#endif

static struct sockaddr_in address;
static int listener;
static uint64_t service;
static atomic_int visitors = CLIENTS;

static void serve(void)
{
	/* No TIME_WAIT: the ports are to last. */
	struct linger at_once = { .l_onoff = 1 };

	/* Whoever is still trying at the end gets in, or it would try for a minute. */
	while (running() || atomic_load(&visitors)) {
		struct pollfd ready = { .fd = listener, .events = POLLIN };
		int fd;

		if (poll(&ready, 1, 50) != 1)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		compute(1, service);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(fd);
	}
}

static void visit(struct account *mine)
{
	while (running()) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		uint64_t began = now_ns();
		bool connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
		char byte;

		count_loss(mine, above(now_ns() - began, ORDINARY));
		receive_timeout(fd, 500);
		while (connected && recv(fd, &byte, 1, 0) < 0 && errno == EAGAIN && running())
			;
		mine->ops += connected;
		close(fd);
	}
	atomic_fetch_sub(&visitors, 1);
}

static void work(int id, struct account *mine)
{
	if (id == CLIENTS)
		serve();
	else
		visit(mine);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	service = rounds_for(SERVICE_NS);
	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, BACKLOG))
		die("cannot listen");
	sum = run_workers(CLIENTS + 1, "visitor", work, seconds);
	print_truth(&sum, "%s", "");
	return 0;
}
