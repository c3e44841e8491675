/*
 * A server with one thread for all its connections: it asks poll which of them have a request, answers
 * those, and asks again. Four clients, other processes, ask for a look-up every 3 ms.
 *
 * Faulty: each second client asks for a report every 100 ms, which takes 25 ms to compute, in the
 * loop. Fixed (-DFIXED): the loop hands reports to a thread of their own, which answers them.
 *
 * lost_ns: time of turns of the loop in which a report was computed.
 */
#include "../loopback.h"

#define CLIENTS 4
#define LOOKUP_EVERY_NS (3 * MILLISECOND)
#define REPORT_EVERY_NS (100 * MILLISECOND)
#define REPORT_NS (25 * MILLISECOND)

static struct sockaddr_in address;
static int listener;
static uint64_t report_rounds;
#ifdef FIXED
static int reports[2]; /* a pipe of descriptors to answer */
#endif

static void answer(int fd)
{
	if (send(fd, "k", 1, MSG_NOSIGNAL) != 1 && running())
		die("cannot answer");
}

#ifdef FIXED
static void *report(void *unused)
{
	int fd;

	(void)unused;
	while (read(reports[0], &fd, sizeof fd) == sizeof fd) {
		compute(1, report_rounds);
		answer(fd);
	}
	return NULL;
}
#endif

/* Reads a request and answers it, or sees to it that it is answered; returns what that cost the loop. */
static uint64_t handle(int fd)
{
	uint64_t took = 0;
	char request;

	if (recv(fd, &request, 1, 0) != 1)
		return 0;
	if (request == 'r') {
#ifdef FIXED
		if (write(reports[1], &fd, sizeof fd) != sizeof fd)
			die("cannot hand a report over");
		return 0;
#else
		uint64_t began = now_ns();

		compute(1, report_rounds);
		took = now_ns() - began;
#endif
	}
	answer(fd);
	return took;
}

static void serve(int id, struct account *mine)
{
	struct pollfd sockets[CLIENTS];

	(void)id;
	for (int i = 0; i < CLIENTS; i++) {
		sockets[i] = (struct pollfd){ .fd = accept(listener, NULL, NULL), .events = POLLIN };
		if (sockets[i].fd < 0)
			die("cannot accept");
		setsockopt(sockets[i].fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	}
	while (running()) {
		if (poll(sockets, CLIENTS, 100) <= 0)
			continue;
		for (int i = 0; i < CLIENTS; i++) {
			if (!(sockets[i].revents & POLLIN))
				continue;
			count_loss(mine, handle(sockets[i].fd));
			mine->ops++;
		}
	}
}

static void client(void *number)
{
	bool wants_reports = (intptr_t)number % 2;
	uint64_t next_report = now_ns() + REPORT_EVERY_NS;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)))
		die("cannot connect");
	for (;;) {
		bool is_report = wants_reports && now_ns() >= next_report;

		if (is_report)
			next_report += REPORT_EVERY_NS;
		if (send(fd, is_report ? "r" : "l", 1, MSG_NOSIGNAL) != 1 || !receive_all(fd, 1))
			return;
		sleep_until(now_ns() + LOOKUP_EVERY_NS);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t clients[CLIENTS];
	struct account sum;

	report_rounds = rounds_for(REPORT_NS);
	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, CLIENTS))
		die("cannot listen");
#ifdef FIXED
	pthread_t thread;

	if (pipe(reports) || pthread_create(&thread, NULL, report, NULL))
		die("cannot start the thread for reports");
#endif
	for (intptr_t i = 0; i < CLIENTS; i++)
		clients[i] = start_process("client", client, (void *)i);
	sum = run_workers(1, "loop", serve, seconds);
	for (int i = 0; i < CLIENTS; i++)
		end_process(clients[i]);
	printf("%llu requests; the loop was at reports for %.0f ms\n", (unsigned long long)sum.ops,
	       (double)sum.lost_ns / 1e6);
	print_truth(&sum, "%s", "");
	return 0;
}
