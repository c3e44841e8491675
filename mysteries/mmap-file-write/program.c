/*
 * Two threads answer requests and count what they saw in a statistics file, which is mapped into
 * memory so that counting is a mere store (the JVM's hsperfdata is such a file): 64 of its 256
 * pages each. Another process keeps the file on the disk up to date.
 *
 * Faulty: the file is on a disk. Whenever it is written out its pages are write-protected again,
 * and the next store faults and asks the file system for permission: it waits until the page is on the
 * disk. Fixed (-DFIXED): the file is in memory (tmpfs).
 *
 * The same stores into pages that are writable already are measured before the other process
 * starts. Time in which the thread waits for a CPU is left out.
 */
#include "../common.h"
#include "../own-ext4.h"
#include "../stalls.h"
#include <sys/mman.h>

#define THREADS 2
#define PAGES 256UL
#define PAGE_BYTES 4096UL
#define COUNTERS 64
#define PAUSE_NS (300 * MICROSECOND)

static volatile uint8_t *statistics;
static uint64_t usual_ns;

static uint64_t count_request(int id, uint64_t n)
{
	uint64_t began = stall_clock();

	for (uint64_t i = 0; i < COUNTERS; i++) {
		uint64_t page = (n * 31 + i * THREADS + (uint64_t)id) % PAGES;

		*(volatile uint64_t *)(statistics + page * PAGE_BYTES) = n;
	}
	return stall_clock() - began;
}

static uint64_t cost_of_writable_pages(void)
{
	uint64_t sum = 0;

	for (uint64_t n = 0; n < 2 * PAGES; n++) {
		uint64_t took = count_request(0, n) + count_request(1, n);

		if (n >= PAGES) /* all pages were written to */
			sum += took / 2;
	}
	return sum / PAGES;
}

static void answer_requests(int id, struct account *mine)
{
	while (running()) {
		sleep_until(now_ns() + PAUSE_NS);
		uint64_t took = count_request(id, mine->ops);

		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		mine->ops++;
	}
}

static void keep_on_disk(void *file)
{
	for (;;) {
		sleep_until(now_ns() + MILLISECOND / 2);
		fsync(*(int *)file);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t syncer;
	struct account sum;
	int file;

#ifdef FIXED
	file = memfd_create("statistics", MFD_CLOEXEC);
#else
	file = openat(own_ext4(1UL << 30, "/var/tmp"), "statistics", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
#endif
	if (file < 0 || ftruncate(file, PAGES * PAGE_BYTES))
		die("cannot make the statistics file");
	statistics = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (statistics == MAP_FAILED)
		die("cannot map the statistics file");
	usual_ns = cost_of_writable_pages();
	syncer = start_process("sync", keep_on_disk, &file);
	sum = run_workers(THREADS, "request", answer_requests, seconds);
	end_process(syncer);

	printf("%llu requests; counting one takes %.3f ms more than the %.3f ms into writable pages, %.1f ms at worst\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6,
	       (double)usual_ns / 1e6, (double)sum.max_ns / 1e6);
	printf("waiting in stores is %.0f %% of the threads' time\n", share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " usual_ns=%llu", (unsigned long long)usual_ns);
	return 0;
}
