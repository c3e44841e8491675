/*
 * Two threads take orders: write each to their log, make it durable, answer, pause for 1 ms. The
 * log has its full size and its blocks since the start, so that no metadata changes.
 *
 * Faulty: each order is made durable by itself. Fixed (-DFIXED): one sync for 256 orders.
 */
#include "../measure.h"
#include "../stalls.h"

#define THREADS 2
#define PAUSE_NS MILLISECOND
#define ORDER_BYTES 4096UL
#define RING_ORDERS 1024UL

#ifdef FIXED
#define SYNC_EVERY 256
#else
#define SYNC_EVERY 1
#endif

static _Atomic uint64_t syncs;

static int written_ring(void)
{
	int fd = nameless_file("/var/tmp");

	fill_file(fd, RING_ORDERS * ORDER_BYTES);
	if (fsync(fd))
		die("cannot write the log through to the disk");
	return fd;
}

static void take_orders(int id, struct account *mine)
{
	int ring = written_ring();
	char order[ORDER_BYTES];

	(void)id;
	memset(order, 'o', sizeof order);
	for (; running(); mine->ops++) {
		uint64_t began;

		sleep_until(now_ns() + PAUSE_NS);
		if (pwrite(ring, order, ORDER_BYTES, (off_t)(mine->ops % RING_ORDERS * ORDER_BYTES)) < 0)
			die("cannot write the log");
		if (mine->ops % SYNC_EVERY)
			continue;
		began = stall_clock();
		fdatasync(ring);
		count_loss(mine, above(stall_clock(), began));
		syncs++;
	}
	close(ring);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum = run_workers(THREADS, "order", take_orders, seconds);

	printf("%llu orders, %llu syncs: %.2f ms each on average, %.1f ms at worst, %.0f %% of the threads' time\n",
	       (unsigned long long)sum.ops, (unsigned long long)syncs,
	       (double)sum.lost_ns / (double)(syncs ? syncs : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " syncs=%llu", (unsigned long long)syncs);
	return 0;
}
