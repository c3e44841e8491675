/*
 * One thread, rx, receives orders, one each millisecond, and answers each; at each full second of
 * the wall clock it publishes a snapshot of 8,000 messages. All that is sent goes through
 * librate, which allows 100 messages in 5 ms: few enough to be reached where sends are slow.
 *
 * Faulty: rx itself publishes the snapshot, and waits for the limit again and again, while orders
 * queue in its socket. Fixed (-DFIXED): another thread, with a limit of its own, publishes it.
 *
 * lost_ns: what rx waited for the limit. worst_us: the longest that an order lay in the queue.
 */
#include "../loopback.h"
#include "../lazy-binding/librate.h"

#define SNAPSHOT 8000
#define LIMIT 100
#define QUEUE_BYTES (208 << 10) /* has room for what comes in half a second */

struct order {
	uint64_t sent_ns;
};

static struct sockaddr_in address;
static int receiver, group;
static _Atomic uint64_t worst_ns;
static struct rate answers = { .limit = LIMIT }, snapshots = { .limit = LIMIT };

/* Publishes; what a send waits for the limit is in the limiter's own count. */
static void publish(struct rate *rate, struct account *mine)
{
	uint64_t blocked = rate->blocked, began = now_ns();
	struct order message = { .sent_ns = began };

	rate_publish(rate, &message, sizeof message);
	if (mine && rate->blocked != blocked)
		count_loss(mine, now_ns() - began);
}

static uint64_t wall_second(void)
{
	return clock_ns(CLOCK_REALTIME) / SECOND;
}

static void publish_snapshot(struct rate *rate, struct account *mine)
{
	for (int i = 0; i < SNAPSHOT && running(); i++)
		publish(rate, mine);
}

static void receive(int id, struct account *mine)
{
#ifndef FIXED
	uint64_t second = wall_second();
#endif
	struct order order;

	(void)id;
	while (running()) {
		if (recv(receiver, &order, sizeof order, 0) == sizeof order) {
			uint64_t age = now_ns() - order.sent_ns;

			if (age > worst_ns)
				worst_ns = age;
			publish(&answers, mine);
			mine->ops++;
		}
#ifndef FIXED
		if (wall_second() != second)
			publish_snapshot(&answers, mine);
		second = wall_second();
#endif
	}
}

static void send_orders(int id, struct account *mine)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)id;
	(void)mine;
	for (uint64_t next = now_ns(); running(); next += MILLISECOND) {
		struct order order;

		sleep_until(next);
		order.sent_ns = now_ns();
		sendto(fd, &order, sizeof order, 0, (struct sockaddr *)&address, sizeof address);
	}
	close(fd);
}

#ifdef FIXED
static void publish_snapshots(int id, struct account *mine)
{
	(void)id;
	(void)mine;
	for (uint64_t second = wall_second(); running(); sleep_until(now_ns() + MILLISECOND)) {
		if (wall_second() != second)
			publish_snapshot(&snapshots, NULL);
		second = wall_second();
	}
}
#endif

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct worker others[2];
	struct account sum, ignored = { 0 };
	int count = 1;

	receiver = bound_socket(SOCK_DGRAM, &address);
	receive_timeout(receiver, 50);
	setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &(int){ QUEUE_BYTES }, sizeof(int));
	group = published_socket();
	answers.socket = snapshots.socket = group;
	start_workers(&others[0], 1, "orders", send_orders);
#ifdef FIXED
	start_workers(&others[1], 1, "snapshots", publish_snapshots);
	count = 2;
#endif
	sum = run_workers(1, "rx", receive, seconds);
	join_workers(others, count, &ignored);
	printf("%llu orders, the oldest lay in the queue for %.1f ms; the limit blocked %llu sends of "
	       "rx and %llu of others\n",
	       (unsigned long long)sum.ops, (double)worst_ns / 1e6,
	       (unsigned long long)answers.blocked, (unsigned long long)snapshots.blocked);
	print_truth(&sum, " worst_us=%llu blocked=%llu", (unsigned long long)(worst_ns / 1000),
		    (unsigned long long)answers.blocked);
	return 0;
}
