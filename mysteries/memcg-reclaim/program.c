/*
 * A service in a memory cgroup of its own: two threads answer requests, each in a fresh buffer of
 * 2 MiB; a third writes the log, through the page cache.
 *
 * Faulty: the cgroup's limit is 24 MiB. The buffers fit, but the log's pages fill what is left,
 * so a new page has to be won back from the cgroup first, by the thread that needs it, and what
 * is not yet written has to be written first. Fixed (-DFIXED): the limit has room for the log's
 * pages, too.
 *
 * What a buffer and a piece of the log cost without reclaim is measured in the same run, before
 * the limit is set.
 */
#include "../common.h"
#include "../own-cgroup.h"
#include <sys/mman.h>

#define REQUESTERS 2
#define BUFFER_BYTES (2UL << 20)
#ifndef UPDATES
#define UPDATES 64
#endif
#define INDEX_BYTES (128UL << 20)
#ifndef PERIOD_NS
#define PERIOD_NS (4 * MILLISECOND)
#endif
#define BASELINE_OPS 200
#ifdef FIXED
#define LIMIT_BYTES (512UL << 20)
#else
#define LIMIT_BYTES (24UL << 20)
#endif

static int index_file;
static uint64_t usual_ns[2]; /* of a buffer, of a piece of the log */

static uint64_t use_buffer(void)
{
	uint64_t began = now_ns(), took;
	char *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		die("cannot map a buffer");
	madvise(buffer, BUFFER_BYTES, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < BUFFER_BYTES; at += 4096)
		buffer[at] = 1;
	took = now_ns() - began;
	munmap(buffer, BUFFER_BYTES);
	return took;
}

/* Updates random pages of the index file. */
static uint64_t update_index(void)
{
	static char page[4096];
	static uint64_t random = 88172645463325252ULL;
	uint64_t began = now_ns();

	for (int i = 0; i < UPDATES; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (pwrite(index_file, page, sizeof page, (off_t)(random % (INDEX_BYTES / 4096) * 4096)) < 0)
			die("cannot write the index");
	}
	return now_ns() - began;
}

static void serve(int id, struct account *mine)
{
	bool updates = id == REQUESTERS;
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / (REQUESTERS + 1);

	for (; running(); next += PERIOD_NS) {
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = updates ? update_index() : use_buffer();
		count_loss(mine, took > usual_ns[updates] ? took - usual_ns[updates] : 0);
		mine->ops++;
	}
}

static uint64_t mean_of(uint64_t (*operation)(void))
{
	uint64_t sum = 0;

	for (uint64_t n = 0; n < BASELINE_OPS; n++)
		sum += operation();
	return sum / BASELINE_OPS;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	index_file = nameless_file("/var/tmp");
	fill_file(index_file, INDEX_BYTES);
	usual_ns[0] = mean_of(use_buffer);
	usual_ns[1] = mean_of(update_index);
	limit_memory(LIMIT_BYTES);
	sum = run_workers(REQUESTERS + 1, "serve", serve, seconds);
	close(index_file);

	printf("%llu buffers and pieces of log; without reclaim a buffer takes %.2f ms, a piece %.2f ms\n",
	       (unsigned long long)sum.ops, (double)usual_ns[0] / 1e6, (double)usual_ns[1] / 1e6);
	printf("each loses %.2f ms on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " limit_bytes=%lu", LIMIT_BYTES);
	return 0;
}
