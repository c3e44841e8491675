/*
 * A service in a memory cgroup of its own: 8 MiB of state, two threads that answer requests, each
 * in a fresh buffer of 2 MiB, and a third that updates pages of an index file here and there,
 * through the page cache.
 *
 * Faulty: the cgroup's limit is 14 MiB. State and buffers fit, but the index's pages fill what is
 * left, so a new page has to be won back from the cgroup first, by the thread that needs it, and
 * an updated page can be had only after it was written. Fixed (-DFIXED): the limit has room for
 * the index's pages, too.
 *
 * What a page of each costs without reclaim is measured in the same run, before the limit is set;
 * a page that takes four times as long is a stall. Waiting for a CPU is left out.
 */
#include "../common.h"
#include "../own-cgroup.h"
#include "../stalls.h"
#include <sys/mman.h>

#define REQUESTERS 2
#define STATE_BYTES (8UL << 20)
#define BUFFER_BYTES (2UL << 20)
#define INDEX_BYTES (256UL << 20)
#define UPDATES 256
#define REQUEST_PERIOD_NS (4 * MILLISECOND)
#define UPDATE_PERIOD_NS (2 * MILLISECOND)
#define BASELINE_OPS 100
#define STALL_FACTOR 4 /* times what a page usually takes is a stall */
#define PAGE_BYTES 4096UL
#ifdef FIXED
#define LIMIT_BYTES (1UL << 30)
#else
#define LIMIT_BYTES (14UL << 20)
#endif

static int index_file;
static char *buffers[REQUESTERS + 1];
static uint64_t usual_ns[2]; /* of a page of a buffer, of an update */

/* A file on a disk, none of it in the page cache: pages are charged to who brings them in. */
static int cold_index(void)
{
	int fd = nameless_file("/var/tmp");

	fill_file(fd, INDEX_BYTES);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("cannot write the index through to the disk");
	return fd;
}

static char *map_memory(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot map %zu bytes", bytes);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static void touch(char *memory, uint64_t page)
{
	((volatile char *)memory)[page * PAGE_BYTES] = 1;
}

static void update(char *content, uint64_t random)
{
	if (pwrite(index_file, content, PAGE_BYTES, (off_t)(random % (INDEX_BYTES / PAGE_BYTES) * PAGE_BYTES)) < 0)
		die("cannot write the index");
}

static uint64_t next_random(void)
{
	static uint64_t random = 88172645463325252ULL;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random;
}

/* Does `operation` on `count` pages and returns what those took together that took more than
 * `stall_ns` each, less the time in which the thread waited for a CPU. */
static uint64_t stalls_of(void (*operation)(char *, uint64_t), bool updates, char *memory, uint64_t count,
			  uint64_t stall_ns, uint64_t *all_ns)
{
	uint64_t queued = queued_ns(), stalled = 0, began = now_ns(), before = began, now = began;

	for (uint64_t i = 0; i < count; i++) {
		operation(memory, updates ? next_random() : i);
		now = now_ns();
		if (now - before > stall_ns)
			stalled += now - before;
		before = now;
	}
	queued = queued_ns() - queued;
	if (all_ns)
		*all_ns += now - began - (queued < now - began ? queued : now - began);
	return stalled > queued ? stalled - queued : 0;
}

static uint64_t use_buffer(char *buffer, uint64_t stall_ns, uint64_t *all_ns)
{
	uint64_t stalled = stalls_of(touch, false, buffer, BUFFER_BYTES / PAGE_BYTES, stall_ns, all_ns);

	madvise(buffer, BUFFER_BYTES, MADV_DONTNEED);
	return stalled;
}

static uint64_t update_index(char *content, uint64_t stall_ns, uint64_t *all_ns)
{
	return stalls_of(update, true, content, UPDATES, stall_ns, all_ns);
}

static void serve(int id, struct account *mine)
{
	bool updates = id == REQUESTERS;
	uint64_t period = updates ? UPDATE_PERIOD_NS : REQUEST_PERIOD_NS;
	uint64_t next = now_ns() + (uint64_t)id * period / (REQUESTERS + 1);

	for (; running(); next += period) {
		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		count_loss(mine, updates ? update_index(buffers[id], STALL_FACTOR * usual_ns[1], NULL)
					 : use_buffer(buffers[id], STALL_FACTOR * usual_ns[0], NULL));
		mine->ops++;
	}
}

/* What one page takes while nothing has to be reclaimed. */
static void measure_usual(void)
{
	for (int i = 0; i < BASELINE_OPS; i++) {
		use_buffer(buffers[0], UINT64_MAX, &usual_ns[0]);
		update_index(buffers[REQUESTERS], UINT64_MAX, &usual_ns[1]);
	}
	usual_ns[0] /= BASELINE_OPS * (BUFFER_BYTES / PAGE_BYTES);
	usual_ns[1] /= BASELINE_OPS * UPDATES;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	char *state;

	index_file = cold_index();
	for (int id = 0; id <= REQUESTERS; id++)
		buffers[id] = map_memory(BUFFER_BYTES);
	measure_usual();
	limit_memory(LIMIT_BYTES);
	state = map_memory(STATE_BYTES);
	for (uint64_t page = 0; page < STATE_BYTES / PAGE_BYTES; page++)
		touch(state, page);
	sum = run_workers(REQUESTERS + 1, "serve", serve, seconds);
	close(index_file);

	printf("%llu buffers and updates; without reclaim a page of a buffer takes %llu ns, of an update %llu ns\n",
	       (unsigned long long)sum.ops, (unsigned long long)usual_ns[0], (unsigned long long)usual_ns[1]);
	printf("each loses %.2f ms on average; at worst %.1f ms: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " limit_bytes=%lu", LIMIT_BYTES);
	return 0;
}
