/*
 * A client asks a server over TCP, one request at a time: a header and a body, in two segments.
 *
 * Faulty: twice in 1.5 s the network is down, for 50 ms and for 300 ms: a filter on the server's
 * socket drops all that comes, as a bad cable would. The segments are lost, and the probe that TCP
 * sends a few milliseconds later; then nothing happens until the client's retransmission timer
 * fires after 200 ms, and, if that was in vain, again after 400 ms. Fixed (-DFIXED): no loss.
 *
 * lost_ns: how long requests took beyond 1 ms, of those that were sent while the network was down.
 */
#include "../loopback.h"
#include "../measure.h"
#include <linux/filter.h>

#define HEADER 32
#define BODY 200
#define ORDINARY MILLISECOND
/* Longer than any request where no segment is lost. */
#define LONG (100 * MILLISECOND)

static struct sockaddr_in address;
static int listener;
static _Atomic int served = -1;
static atomic_ullong outages;

static void serve(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	receive_timeout(fd, 1000);
	atomic_store(&served, fd);
	while (receive_all(fd, HEADER + BODY))
		if (send(fd, "ok", 2, MSG_NOSIGNAL) != 2)
			break;
}

static void ask(struct account *mine)
{
	char bytes[HEADER + BODY] = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof address))
		die("cannot connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	receive_timeout(fd, 3000);
	while (running()) {
		uint64_t began = now_ns(), took;

		if (send(fd, bytes, HEADER, MSG_NOSIGNAL) != HEADER ||
		    send(fd, bytes, BODY, MSG_NOSIGNAL) != BODY || !receive_all(fd, 2))
			break;
		took = now_ns() - began;
		if (took >= LONG)
			count_loss(mine, above(took, ORDINARY));
		mine->ops++;
		sleep_until(now_ns() + MILLISECOND);
	}
	close(fd);
}

/* The network, seen from the server. */
static void be_bad(void)
{
#ifndef FIXED
	static const uint64_t down[] = { 50 * MILLISECOND, 300 * MILLISECOND };
	struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog filter = { .len = 1, .filter = nothing };
	uint64_t next = now_ns() + 100 * MILLISECOND;

	while (running()) {
		uint64_t length = down[atomic_fetch_add(&outages, 1) % 2];
		int fd;

		sleep_until(next);
		fd = atomic_load(&served);
		if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter))
			die("cannot attach a filter");
		sleep_until(next + length);
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){ 0 }, sizeof(int));
		next += 750 * MILLISECOND;
	}
#endif
}

static void work(int id, struct account *mine)
{
	if (id == 0)
		ask(mine);
	else if (id == 1)
		serve();
	else
		be_bad();
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, 8))
		die("cannot listen");
	sum = run_workers(3, "rpc", work, seconds);
	print_truth(&sum, " outages=%llu", atomic_load(&outages));
	return 0;
}
