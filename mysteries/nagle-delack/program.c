/*
 * A client asks a server over TCP, one request at a time: a header and a body, in two writes.
 *
 * Faulty: Nagle's algorithm holds the body back until the header is acknowledged, and the server,
 * which has nothing to say before it has the body, delays that acknowledgement by 40 ms. Fixed
 * (-DFIXED): TCP_NODELAY on the client.
 *
 * lost_ns: how long requests took beyond 1 ms.
 */
#include "../loopback.h"
#include "../measure.h"

#define HEADER 32
#define BODY 200
#define ORDINARY MILLISECOND

static struct sockaddr_in address;
static int listener;

static void serve(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	receive_timeout(fd, 200);
	while (receive_all(fd, HEADER + BODY))
		if (send(fd, "ok", 2, MSG_NOSIGNAL) != 2)
			break;
	close(fd);
}

static void ask(struct account *mine)
{
	char bytes[HEADER + BODY] = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof address))
		die("cannot connect");
#ifdef FIXED
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
#endif
	while (running()) {
		uint64_t began = now_ns();

		if (send(fd, bytes, HEADER, MSG_NOSIGNAL) != HEADER ||
		    send(fd, bytes, BODY, MSG_NOSIGNAL) != BODY || !receive_all(fd, 2))
			break;
		count_loss(mine, above(now_ns() - began, ORDINARY));
		mine->ops++;
		compute(mine->ops, 20000);
	}
	close(fd);
}

static void work(int id, struct account *mine)
{
	if (id == 0)
		ask(mine);
	else
		serve();
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, 8))
		die("cannot listen");
	sum = run_workers(2, "rpc", work, seconds);
	print_truth(&sum, "%s", "");
	return 0;
}
