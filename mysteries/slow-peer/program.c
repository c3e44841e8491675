/*
 * Two threads send an order each to a broker, another process, by a connection of their own, and
 * wait for its answer before they send the next, as clients of a database do.
 *
 * Faulty: before it answers, the broker waits 4 ms for more orders, to handle them together. Fixed
 * (-DFIXED): it answers at once.
 *
 * lost_ns: from sending an order until its answer has come, of what took longer than a millisecond.
 */
#include "../loopback.h"

#define CLIENTS 2
#define BATCH_NS (4 * MILLISECOND)
#define PAUSE_NS (2 * MILLISECOND)

static struct sockaddr_in address;
static int listener;

static void answer(int fd)
{
	char order[64];

	while (recv(fd, order, sizeof order, MSG_WAITALL) == sizeof order) {
#ifndef FIXED
		sleep_until(now_ns() + BATCH_NS);
#endif
		if (send(fd, order, sizeof order, MSG_NOSIGNAL) != sizeof order)
			return;
	}
}

static void *serve(void *fd)
{
	answer((int)(intptr_t)fd);
	return NULL;
}

static void broker(void *unused)
{
	pthread_t thread;

	(void)unused;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
			die("the broker cannot accept");
	}
}

static void order(int id, struct account *mine)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char message[64] = { 0 };

	(void)id;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)))
		die("cannot connect to the broker");
	while (running()) {
		uint64_t began = now_ns(), took;

		if (send(fd, message, sizeof message, MSG_NOSIGNAL) != sizeof message ||
		    !receive_all(fd, sizeof message))
			break;
		took = now_ns() - began;
		mine->ops++;
		if (took > MILLISECOND)
			count_loss(mine, took);
		sleep_until(now_ns() + PAUSE_NS);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t process;

	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, CLIENTS))
		die("cannot listen");
	process = start_process("broker", broker, NULL);
	sum = run_workers(CLIENTS, "client", order, seconds);
	end_process(process);
	printf("%llu orders, answered after %.0f us on average when that took a millisecond\n",
	       (unsigned long long)sum.ops,
	       sum.ops ? (double)sum.lost_ns / 1e3 / (double)sum.ops : 0.0);
	print_truth(&sum, "%s", "");
	return 0;
}
