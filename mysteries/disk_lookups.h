/*
 * Threads that look records up in an index on a disk, some for each request, and measure what the disk costs
 * them: the sleep in lookups in which the thread's own count of blocks read (getrusage) went up.
 */
#ifndef MYSTERIES_DISK_LOOKUPS_H
#define MYSTERIES_DISK_LOOKUPS_H

#include "measure.h"
#include "stalls.h"
#include <sys/resource.h>

#define RECORD_BYTES 4096UL
#define THREADS 2
#define PERIOD_NS (10 * MILLISECOND)

static struct {
	int file;
	int of_request; /* records */
	const char *copy;	/* of the index, if the program has one in its own memory */
	/* Which record the `nth` lookup of all wants. */
	uint64_t (*record)(uint64_t nth, uint64_t random);
	_Atomic uint64_t begun, from_disk;
} lookups;

/* Blocks that this thread has read from a disk. */
static uint64_t blocks_read(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_inblock;
}

static void read_record(uint64_t number, char *record)
{
	if (lookups.copy)
		memcpy(record, lookups.copy + number * RECORD_BYTES, RECORD_BYTES);
	else if (pread(lookups.file, record, RECORD_BYTES, (off_t)(number * RECORD_BYTES)) !=
		 (ssize_t)RECORD_BYTES)
		die("cannot read the index");
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
		lookups.from_disk++;
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
		for (int i = 0; i < lookups.of_request; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			look_up(lookups.record(lookups.begun++, random), mine);
		}
	}
}

static void print_lookups(const struct account *sum)
{
	printf("%llu lookups, %llu of them read the disk\n", (unsigned long long)sum->ops,
	       (unsigned long long)lookups.from_disk);
	printf("such a lookup sleeps %.0f us on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum->lost_ns / (double)(lookups.from_disk ? lookups.from_disk : 1) / 1e3,
	       (double)sum->max_ns / 1e6, share(sum->lost_ns, sum->wall_ns));
}

#endif
