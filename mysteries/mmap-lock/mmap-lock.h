/*
 * A column store in small: every thread answers "count the rows with i > 5" again and again,
 * each time over one segment file that is wholly in the page cache. faulty.c and fixed.c
 * differ only in how a scan gets at the segment's bytes.
 */
#ifndef MMAP_LOCK_H
#define MMAP_LOCK_H

#include "../common.h"
#include <sys/mman.h>

#define SEGMENT_BYTES 1265444

/* One thread's way to the segment: its own open file, and what getting the bytes cost it. */
struct reader {
	int fd;
	uint8_t *buffer;
	uint64_t access_ns; /* in the system calls that give and take away the bytes */
	uint64_t calls;
	struct account *account;
};

/* Runs one query over the segment and returns the number of rows that match. */
typedef uint64_t (*scan_fn)(struct reader *reader);

static scan_fn scan;
static int segment_fd;
static uint64_t uncontended_ns; /* what one scan's system calls take with nobody else there */
static _Atomic uint64_t total_access_ns, total_calls;

/* One byte a row; 16 rows at a time, in byte counters that are emptied before they overflow. */
static inline uint64_t count_rows(const uint8_t *column, size_t length)
{
	typedef uint8_t bytes16 __attribute__((vector_size(16)));
	size_t at = 0;
	uint64_t rows = 0;

	while (length - at >= 16) {
		size_t blocks = (length - at) / 16 < 255 ? (length - at) / 16 : 255;
		bytes16 counts = { 0 };

		for (; blocks > 0; blocks--, at += 16) {
			bytes16 values;

			memcpy(&values, column + at, 16);
			counts -= (bytes16)(values > 5);
		}
		for (int lane = 0; lane < 16; lane++)
			rows += counts[lane];
	}
	for (; at < length; at++)
		rows += column[at] > 5;
	return rows;
}

static inline struct reader open_reader(struct account *account)
{
	struct reader reader = { .account = account };
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", segment_fd);
	reader.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (reader.fd < 0)
		die("cannot open the segment a second time");
	reader.buffer = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (reader.buffer == MAP_FAILED)
		die("cannot allocate %d bytes", SEGMENT_BYTES);
	return reader;
}

static inline void close_reader(struct reader *reader)
{
	munmap(reader->buffer, SEGMENT_BYTES);
	close(reader->fd);
}

/* Called by scan(): the system calls of one scan took `ns`. */
static inline void count_access(struct reader *reader, uint64_t ns)
{
	reader->access_ns += ns;
	reader->calls++;
	count_loss(reader->account, ns > uncontended_ns ? ns - uncontended_ns : 0);
}

static inline void run_queries(int id, struct account *mine)
{
	struct reader reader = open_reader(mine);
	uint64_t rows = 0;

	(void)id;
	while (running()) {
		rows = scan(&reader);
		mine->ops++;
	}
	if (mine->ops && rows < SEGMENT_BYTES / 2)
		die("wrong result: %llu rows", (unsigned long long)rows);
	total_access_ns += reader.access_ns;
	total_calls += reader.calls;
	close_reader(&reader);
}

/* The median of 51 scans by one thread. */
static inline uint64_t measure_uncontended(void)
{
	struct account ignored = { 0 };
	struct reader reader = open_reader(&ignored);
	uint64_t sorted[51];

	for (int n = 0; n < 51; n++) {
		uint64_t before = reader.access_ns, one;
		int at = n;

		scan(&reader);
		one = reader.access_ns - before;
		for (; at > 0 && sorted[at - 1] > one; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = one;
	}
	close_reader(&reader);
	return sorted[25];
}

static inline int run_column_store(int argc, char **argv, scan_fn how)
{
	double seconds = begin(argc, argv);
	int threads = (int)argument(argc, argv, 2, "THREADS", 1, MAX_WORKERS, 16);
	struct account sum;
	uint64_t began;
	double elapsed;

	scan = how;
	segment_fd = nameless_file("/tmp");
	fill_file(segment_fd, SEGMENT_BYTES);
	uncontended_ns = measure_uncontended();
	began = now_ns();
	sum = run_workers(threads, "scan", run_queries, seconds);
	elapsed = (double)(now_ns() - began) / 1e9;
	close(segment_fd);
	/* In the calls a thread may also wait for a CPU, which is not the lock's fault. Nothing
	 * else in this program blocks. */
	if (sum.lost_ns > blocked_ns(&sum))
		sum.lost_ns = blocked_ns(&sum);

	printf("%d threads, %.0f scans/s\n", threads, (double)sum.ops / elapsed);
	printf("getting the bytes: %.1f us a scan (alone: %.1f us), %.0f %% of the threads' time\n",
	       (double)total_access_ns / (double)(total_calls ? total_calls : 1) / 1e3,
	       (double)uncontended_ns / 1e3, share(total_access_ns, sum.wall_ns));
	print_truth(&sum, " access_ns=%llu uncontended_ns=%llu threads=%d",
		    (unsigned long long)total_access_ns, (unsigned long long)uncontended_ns, threads);
	return 0;
}

#endif
