/*
 * Four threads send a reply of 128 KiB over TCP every 50 ms, each on a connection of its own, and
 * close it. The client, a process of its own, reads 16 KiB every 3 ms.
 *
 * Faulty: SO_LINGER is set, so close() waits until the client has acknowledged all. Fixed
 * (-DFIXED): without it close() returns at once, and the kernel sends the rest by itself.
 *
 * lost_ns: time in close().
 */
#include "../loopback.h"

#define SENDERS 4
#define PERIOD_NS (50 * MILLISECOND)
#define REPLY (128 << 10)
#define PIECE (16 << 10)
#define PAUSE_NS (3 * MILLISECOND)
#define LINGER_SECONDS 5

static struct sockaddr_in address;
static int listener;

static void *read_slowly(void *unused)
{
	static _Thread_local char piece[PIECE];

	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			die("cannot accept a connection");
		do
			sleep_until(now_ns() + PAUSE_NS);
		while (recv(fd, piece, PIECE, MSG_WAITALL) > 0);
		close(fd);
	}
	return unused;
}

static void be_client(void *unused)
{
	pthread_t thread;

	for (int i = 1; i < SENDERS; i++) {
		errno = pthread_create(&thread, NULL, read_slowly, unused);
		if (errno)
			die("cannot start a reader");
	}
	read_slowly(unused);
}

/* A connection whose send buffer takes the whole reply: send() does not wait. */
static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 2 * REPLY }, sizeof(int)) ||
	    connect(fd, (struct sockaddr *)&address, sizeof address))
		die("cannot connect");
#ifndef FIXED
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger))
		die("cannot set SO_LINGER");
#endif
	return fd;
}

/* Sends one reply, and returns how long it took to close its connection. */
static uint64_t reply(void)
{
	static const char bytes[REPLY];
	int fd = connected();
	uint64_t began;

	if (send(fd, bytes, REPLY, MSG_NOSIGNAL) != REPLY)
		die("cannot send a reply");
	began = now_ns();
	close(fd);
	return now_ns() - began;
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / SENDERS;

	for (; running(); next += PERIOD_NS) {
		sleep_until(next);
		count_loss(mine, reply());
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t client;

	listener = bound_socket(SOCK_STREAM, &address);
	/* Small, so that most of a reply waits in the sender's buffer. */
	if (setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ 2 * PIECE }, sizeof(int)) ||
	    listen(listener, 8))
		die("cannot listen");
	client = start_process("slow-client", be_client, NULL);
	sum = run_workers(SENDERS, "sender", serve, seconds);
	end_process(client);
	printf("%llu replies\n", (unsigned long long)sum.ops);
	print_truth(&sum, "%s", "");
	return 0;
}
