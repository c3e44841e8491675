/*
 * A service in a memory cgroup of its own: 8 MiB of state, two threads that answer requests, each
 * in a fresh buffer of 2 MiB, and a third that updates pages of an index file here and there,
 * through the page cache.
 *
 * Faulty: the cgroup's limit is 16 MiB. State and buffers fit, but the index's pages fill what is
 * left, so a new page has to be won back from the cgroup first, by the thread that needs it, and
 * an updated page can be had only after it was written. Fixed (-DFIXED): the limit has room for
 * the index's pages, too.
 *
 * What a buffer and an update cost without reclaim is measured in the same run, before the limit
 * is set. Time in which the thread waits for a CPU is left out.
 */
#include "../common.h"
#include "../own-cgroup.h"
#include "../stalls.h"
#include <sys/mman.h>

#define REQUESTERS 2
#define STATE_BYTES (8UL << 20)
#define BUFFER_BYTES (2UL << 20)
#define INDEX_BYTES (2UL << 30) /* sparse */
#define UPDATES 128
#define REQUEST_PERIOD_NS (5 * MILLISECOND)
#define UPDATE_PERIOD_NS (2 * MILLISECOND)
#define BASELINE_OPS 100
#ifdef FIXED
#define LIMIT_BYTES (2UL << 30)
#else
#define LIMIT_BYTES (16UL << 20)
#endif

static int index_file;
static uint64_t usual_ns[2]; /* of a buffer, of an update */

/* `bytes` of new memory, each page of it in use. */
static char *use_memory(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot map %zu bytes", bytes);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += 4096)
		memory[at] = 1;
	return memory;
}

static uint64_t use_buffer(void)
{
	uint64_t began = stall_clock(), took;
	char *buffer = use_memory(BUFFER_BYTES);

	took = stall_clock() - began;
	munmap(buffer, BUFFER_BYTES);
	return took;
}

static uint64_t update_index(void)
{
	static char page[4096];
	static uint64_t random = 88172645463325252ULL;
	uint64_t began = stall_clock();

	for (int i = 0; i < UPDATES; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (pwrite(index_file, page, sizeof page, (off_t)(random % INDEX_BYTES / 4096 * 4096)) < 0)
			die("cannot write the index");
	}
	return stall_clock() - began;
}

static void serve(int id, struct account *mine)
{
	bool updates = id == REQUESTERS;
	uint64_t period = updates ? UPDATE_PERIOD_NS : REQUEST_PERIOD_NS;
	uint64_t next = now_ns() + (uint64_t)id * period / (REQUESTERS + 1);

	for (; running(); next += period) {
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
	if (ftruncate(index_file, INDEX_BYTES))
		die("cannot make the index");
	usual_ns[0] = mean_of(use_buffer);
	usual_ns[1] = mean_of(update_index);
	limit_memory(LIMIT_BYTES);
	use_memory(STATE_BYTES);
	sum = run_workers(REQUESTERS + 1, "serve", serve, seconds);
	close(index_file);

	printf("%llu buffers and updates; without reclaim a buffer takes %.2f ms, an update %.2f ms\n",
	       (unsigned long long)sum.ops, (double)usual_ns[0] / 1e6, (double)usual_ns[1] / 1e6);
	printf("each loses %.2f ms on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " limit_bytes=%lu", LIMIT_BYTES);
	return 0;
}
