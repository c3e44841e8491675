/*
 * Two threads answer lookups in a 64 MiB index: 32 records a request, a request every 10 ms. Others
 * need the page cache: ten times a second it is made to let go of the index (POSIX_FADV_DONTNEED, as
 * a backup that reads past it would).
 *
 * Faulty: each record is read from the file when it is asked for. Fixed (-DFIXED): the index was
 * read into the program's own memory at the start.
 */
#include "../measure.h"
#include "../stalls.h"
#include <sys/resource.h>

#define INDEX_BYTES (64UL << 20)
#define RECORD_BYTES 4096UL
#define THREADS 2
#define RECORDS 32
#define PERIOD_NS (10 * MILLISECOND)
#define EVICT_PERIOD_NS (100 * MILLISECOND)

static int file;
#ifdef FIXED
static char *copy;
#endif
static _Atomic uint64_t from_disk;

/* Blocks that this thread has read from a disk. */
static uint64_t blocks_read(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_inblock;
}

static void read_record(uint64_t number, char *record)
{
#ifdef FIXED
	memcpy(record, copy + number * RECORD_BYTES, RECORD_BYTES);
#else
	if (pread(file, record, RECORD_BYTES, (off_t)(number * RECORD_BYTES)) != (ssize_t)RECORD_BYTES)
		die("cannot read the index");
#endif
}

/* If the record came from the disk, the sleep for it is lost. */
static void look_up(uint64_t number, struct account *mine)
{
	char record[RECORD_BYTES];
	uint64_t blocks = blocks_read(), began = sleep_clock(), took;

	read_record(number, record);
	took = above(sleep_clock(), began);
	if (blocks_read() != blocks) {
		count_loss(mine, took);
		from_disk++;
	}
	mine->ops++;
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / THREADS;
	uint64_t random = 0x9e3779b97f4a7c15ULL * (uint64_t)(id + 1);

	for (; running(); next += PERIOD_NS) {
		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		for (int i = 0; i < RECORDS; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			look_up(random % (INDEX_BYTES / RECORD_BYTES), mine);
		}
	}
}

static void evict(int id, struct account *mine)
{
	(void)id;
	for (uint64_t next = now_ns(); running(); next += EVICT_PERIOD_NS) {
		sleep_until(next);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		mine->ops++;
	}
}

static void make_index(void)
{
	file = nameless_file("/var/tmp");
	fill_file(file, INDEX_BYTES);
	if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		die("cannot write the index through to the disk");
#ifdef FIXED
	copy = malloc(INDEX_BYTES);
	if (!copy || pread(file, copy, INDEX_BYTES, 0) != (ssize_t)INDEX_BYTES)
		die("cannot read the index");
#endif
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum, ignored = { 0 };
	struct worker evictor;

	make_index();
	start_workers(&evictor, 1, "evict", evict);
	sum = run_workers(THREADS, "lookup", answer_requests, seconds);
	join_workers(&evictor, 1, &ignored);
	close(file);

	printf("%llu lookups, %llu of them read the disk\n", (unsigned long long)sum.ops,
	       (unsigned long long)from_disk);
	printf("such a lookup sleeps %.0f us on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(from_disk ? from_disk : 1) / 1e3,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " from_disk=%llu", (unsigned long long)from_disk);
	return 0;
}
