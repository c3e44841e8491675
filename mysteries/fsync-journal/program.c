/*
 * Two threads take orders: write each to their log, make it durable, answer, pause for 0.3 ms.
 * Another process unpacks archives, thousands of small files, on the same file system.
 *
 * Faulty: an order is appended and fsync()ed. The longer file is a change of metadata, so fsync
 * waits until the journal has committed its running transaction, and the archive's new inodes and
 * directories are in that transaction, too. Fixed (-DFIXED): the log is a ring that was written
 * to its full size at the start; orders overwrite it, and fdatasync() needs no commit.
 *
 * What making an order durable costs without a commit is taken in the same run: each thread has
 * such a ring in any case, and writes every eighth order to it. Time in which the thread waits for
 * a CPU is left out.
 */
#include "../common.h"
#include "../own-ext4.h"
#include "../stalls.h"

#define THREADS 2
#define PAUSE_NS (300 * MICROSECOND)
#define ORDER_BYTES 4096UL
#define RING_ORDERS 256UL
#define BASELINE_EVERY 8

static int root;
static _Atomic uint64_t baseline_ns, baseline_count, sync_ns, sync_count;

/* A log that will not change its size or its blocks any more. */
static int written_ring(void)
{
	int fd = file_in(root);

	fill_file(fd, RING_ORDERS * ORDER_BYTES);
	if (fsync(fd))
		die("cannot write the log through to the disk");
	return fd;
}

static uint64_t overwrite(int ring, const char *order, uint64_t number)
{
	uint64_t began;

	if (pwrite(ring, order, ORDER_BYTES, (off_t)(number % RING_ORDERS * ORDER_BYTES)) < 0)
		die("cannot write the log");
	began = stall_clock();
	fdatasync(ring);
	return stall_clock() - began;
}

#ifndef FIXED
static uint64_t append(int log, const char *order)
{
	uint64_t began;

	if (write(log, order, ORDER_BYTES) < 0)
		die("cannot write the log");
	began = stall_clock();
	fsync(log);
	return stall_clock() - began;
}
#endif

static void take_orders(int id, struct account *mine)
{
	int ring = written_ring(), log = file_in(root);
	char order[ORDER_BYTES];

	memset(order, 'o', sizeof order);
	(void)id;
	for (uint64_t n = 0; running(); n++) {
		uint64_t took;

		sleep_until(now_ns() + PAUSE_NS);
		if (n % BASELINE_EVERY == 0) {
			baseline_ns += overwrite(ring, order, n);
			baseline_count++;
			continue;
		}
#ifdef FIXED
		took = overwrite(ring, order, n);
#else
		took = append(log, order);
#endif
		sync_ns += took;
		sync_count++;
		count_loss(mine, took);
		mine->ops++;
	}
	close(ring);
	close(log);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t unpack;
	struct account sum;
	uint64_t usual, ordinary;

	root = own_ext4(1UL << 30, "/var/tmp");
	unpack = start_process("unpack", unpack_archives, &root);
	sum = run_workers(THREADS, "order", take_orders, seconds);
	end_process(unpack);
	usual = baseline_count ? baseline_ns / baseline_count : 0;
	ordinary = usual * sync_count;
	sum.lost_ns = sum.lost_ns > ordinary ? sum.lost_ns - ordinary : 0;

	printf("%llu orders; making one durable takes %.2f ms on average, %.1f ms at worst; %.2f ms without a commit\n",
	       (unsigned long long)sum.ops, (double)sync_ns / (double)(sync_count ? sync_count : 1) / 1e6,
	       (double)sum.max_ns / 1e6, (double)usual / 1e6);
	printf("waiting for the journal is %.0f %% of the threads' time\n", share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " sync_ns=%llu baseline_ns=%llu", (unsigned long long)sync_ns,
		    (unsigned long long)baseline_ns);
	return 0;
}
