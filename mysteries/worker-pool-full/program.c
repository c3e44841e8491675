/*
 * A server with a fixed number of workers: each takes a connection from the listening socket, reads its
 * request, waits 15 ms for a device as a backend would make it wait, answers, and closes. Six clients,
 * other processes, ask all the time.
 *
 * Faulty: two workers. Fixed (-DFIXED): twelve.
 *
 * lost_ns: time that workers had a request while all of them had one.
 */
#include "../loopback.h"

#define CLIENTS 6
#define DEVICE_NS (15 * MILLISECOND)
#define PAUSE_NS (5 * MILLISECOND)
#ifdef FIXED
#define WORKERS 12
#else
#define WORKERS 2
#endif

static struct sockaddr_in address;
static int listener;
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static int busy;
static uint64_t full_since;

static void take(void)
{
	pthread_mutex_lock(&pool);
	if (++busy == WORKERS)
		full_since = now_ns();
	pthread_mutex_unlock(&pool);
}

/* Who ends the time that all had a request counts it for all of them. */
static void be_free(struct account *mine)
{
	pthread_mutex_lock(&pool);
	if (busy-- == WORKERS) {
		uint64_t full_ns = now_ns() - full_since;

		for (int i = 0; i < WORKERS; i++)
			count_loss(mine, full_ns);
	}
	pthread_mutex_unlock(&pool);
}

static void handle(int fd)
{
	char request[64];

	if (recv(fd, request, sizeof request, MSG_WAITALL) == sizeof request) {
		sleep_until(now_ns() + DEVICE_NS);
		if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request)
			perror("cannot answer");
	}
	close(fd);
}

static void work(int id, struct account *mine)
{
	struct pollfd to_accept = { .fd = listener, .events = POLLIN };

	(void)id;
	while (running()) {
		int fd;

		if (poll(&to_accept, 1, 100) <= 0)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue; /* another one was faster */
		take();
		handle(fd);
		be_free(mine);
		mine->ops++;
	}
}

static void client(void *unused)
{
	char request[64] = { 0 };

	(void)unused;
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
			return;
		if (send(fd, request, sizeof request, MSG_NOSIGNAL) == sizeof request)
			receive_all(fd, sizeof request);
		close(fd);
		sleep_until(now_ns() + PAUSE_NS);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t clients[CLIENTS];
	struct account sum;

	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, 2 * CLIENTS) || fcntl(listener, F_SETFL, O_NONBLOCK))
		die("cannot listen");
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = start_process("client", client, NULL);
	sum = run_workers(WORKERS, "worker", work, seconds);
	for (int i = 0; i < CLIENTS; i++)
		end_process(clients[i]);
	printf("%llu requests by %d workers\n", (unsigned long long)sum.ops, WORKERS);
	print_truth(&sum, "%s", "");
	return 0;
}
