/*
 * Two threads answer lookups in a 64 MiB index that is mapped from a file: 64 lookups a request,
 * a request every 10 ms. Memory is short: five times a second the kernel is asked to reclaim the
 * index (MADV_PAGEOUT, what reclaim does by itself under pressure).
 *
 * Faulty: the mapping is an ordinary one, so the next lookups read from the disk, in a page
 * fault. Fixed (-DFIXED): the index is prefaulted and locked (mlock), which reclaim respects.
 */
#include "../common.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define INDEX_BYTES (64UL << 20)
#define PAGE_BYTES 4096UL
#define THREADS 2
#define LOOKUPS 64
#define PERIOD_NS (10 * MILLISECOND)
#define RECLAIM_PERIOD_NS (200 * MILLISECOND)

static const volatile uint8_t *pages;
static _Atomic uint64_t major_faults;

/* A file on a disk, written through, none of it left in the page cache. */
static int cold_index(void)
{
	int fd = nameless_file("/var/tmp");

	fill_file(fd, INDEX_BYTES);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("cannot write the index through to the disk");
	return fd;
}

static void *map_index(int fd)
{
	void *index;

#ifdef FIXED
	index = mmap(NULL, INDEX_BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (index != MAP_FAILED && mlock(index, INDEX_BYTES))
		die("cannot lock %lu KiB of memory (raise `ulimit -l`)", INDEX_BYTES >> 10);
#else
	index = mmap(NULL, INDEX_BYTES, PROT_READ, MAP_SHARED, fd, 0);
#endif
	if (index == MAP_FAILED)
		die("cannot map the index");
	madvise(index, INDEX_BYTES, MADV_RANDOM); /* no reading of neighbours */
	return index;
}

static uint64_t major_faults_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_majflt;
}

/* One lookup: if it took a major fault, all of its time is lost. */
static void look_up(uint64_t page, struct account *mine)
{
	uint64_t faults = major_faults_so_far();
	uint64_t began = now_ns(), took;

	(void)pages[page * PAGE_BYTES];
	took = now_ns() - began;
	faults = major_faults_so_far() - faults;
	if (faults)
		count_loss(mine, took);
	major_faults += faults;
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
		for (int i = 0; i < LOOKUPS; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			look_up(random % (INDEX_BYTES / PAGE_BYTES), mine);
		}
	}
}

/* Refused (EINVAL) for a locked mapping: that is what protects it. */
static void reclaim(int id, struct account *mine)
{
	(void)id;
	for (uint64_t next = now_ns(); running(); next += RECLAIM_PERIOD_NS) {
		sleep_until(next);
		madvise((void *)pages, INDEX_BYTES, MADV_PAGEOUT);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum, ignored = { 0 };
	struct worker reclaimer;
	int fd = cold_index();

	pages = map_index(fd);
	start_workers(&reclaimer, 1, "reclaim", reclaim);
	sum = run_workers(THREADS, "lookup", answer_requests, seconds);
	join_workers(&reclaimer, 1, &ignored);
	munmap((void *)pages, INDEX_BYTES);
	close(fd);

	printf("%llu lookups, %llu of them read the disk in a major fault\n",
	       (unsigned long long)sum.ops, (unsigned long long)major_faults);
	printf("such a lookup takes %.0f us on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(major_faults ? major_faults : 1) / 1e3,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " major_faults=%llu", (unsigned long long)major_faults);
	return 0;
}
