/*
 * A server with a thread for each connection, as a database has: each request changes the balance of an
 * account, and has that for itself while it waits 10 ms for a device. Who finds it taken puts itself in
 * the queue and sleeps in poll on a descriptor of its own; who has done gives the account to the first
 * in the queue and wakes that one. Six clients, other processes, ask all the time.
 *
 * Faulty: all change one account. Fixed (-DFIXED): each client has its own.
 *
 * lost_ns: time that threads waited for the account.
 */
#include "../loopback.h"
#include <sys/eventfd.h>

#define CLIENTS 6
#define DEVICE_NS (10 * MILLISECOND)
#define PAUSE_NS (2 * MILLISECOND)
#ifdef FIXED
#define ACCOUNTS CLIENTS
#else
#define ACCOUNTS 1
#endif

struct balance {
	pthread_mutex_t guard; /* of the queue, for some instructions */
	bool taken;
	int queue[CLIENTS]; /* eventfds of those that wait */
	int first, waiting;
};

static struct sockaddr_in address;
static int listener;
static struct balance balances[ACCOUNTS];

/* Returns when the account is the caller's; false if the program ends before. */
static bool take(struct balance *balance, int own)
{
	struct pollfd turn = { .fd = own, .events = POLLIN };
	uint64_t count;
	bool is_free;

	pthread_mutex_lock(&balance->guard);
	is_free = !balance->taken;
	balance->taken = true;
	if (!is_free)
		balance->queue[(balance->first + balance->waiting++) % CLIENTS] = own;
	pthread_mutex_unlock(&balance->guard);
	if (is_free)
		return true;
	while (poll(&turn, 1, 200) <= 0)
		if (!running())
			return false;
	return read(own, &count, sizeof count) == sizeof count;
}

static void give(struct balance *balance)
{
	uint64_t one = 1;
	int next = -1;

	pthread_mutex_lock(&balance->guard);
	balance->taken = balance->waiting > 0;
	if (balance->taken) {
		next = balance->queue[balance->first];
		balance->first = (balance->first + 1) % CLIENTS;
		balance->waiting--;
	}
	pthread_mutex_unlock(&balance->guard);
	if (next >= 0 && write(next, &one, sizeof one) != sizeof one)
		die("cannot wake the next one");
}

static void serve(int id, struct account *mine)
{
	struct balance *balance = &balances[id % ACCOUNTS];
	int own = eventfd(0, EFD_CLOEXEC), fd = accept(listener, NULL, NULL);
	char request[64];

	if (own < 0 || fd < 0)
		die("cannot accept");
	receive_timeout(fd, 100);
	while (running()) {
		uint64_t began;

		if (recv(fd, request, sizeof request, MSG_WAITALL) != sizeof request)
			continue;
		began = now_ns();
		if (!take(balance, own))
			break;
		count_loss(mine, now_ns() - began);
		sleep_until(now_ns() + DEVICE_NS);
		give(balance);
		mine->ops++;
		if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request)
			break;
	}
}

static void client(void *unused)
{
	char request[64] = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unused;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		die("cannot connect");
	for (;;) {
		if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
		    !receive_all(fd, sizeof request))
			return;
		sleep_until(now_ns() + PAUSE_NS);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t clients[CLIENTS];
	struct account sum;

	for (int i = 0; i < ACCOUNTS; i++)
		pthread_mutex_init(&balances[i].guard, NULL);
	listener = bound_socket(SOCK_STREAM, &address);
	if (listen(listener, CLIENTS))
		die("cannot listen");
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = start_process("client", client, NULL);
	sum = run_workers(CLIENTS, "session", serve, seconds);
	for (int i = 0; i < CLIENTS; i++)
		end_process(clients[i]);
	printf("%llu requests for %d accounts\n", (unsigned long long)sum.ops, ACCOUNTS);
	print_truth(&sum, "%s", "");
	return 0;
}
