/*
 * A service looks things up in 16 MiB of its memory, here and there. A thread that saves memory pages
 * out what it believes not to be needed, all of it, ten times a second.
 *
 * Faulty: what was paged out is in swap, and each look-up of it reads it back. Fixed (-DFIXED): the
 * service has locked its memory (mlock), and nothing of it goes to swap.
 *
 * Needs a swap device, which it does not make. What a unit of look-ups costs is measured in the same run,
 * before anything is paged out.
 */
#include "../common.h"
#include "../stalls.h"
#include <sys/mman.h>

#define WORKERS 2
#define MEMORY_BYTES (16UL << 20)
#define PAGE_BYTES 4096UL
#define LOOKUPS 256 /* in a unit of work */
#define PERIOD_NS (4 * MILLISECOND)
#define SAVE_PERIOD_NS (100 * MILLISECOND)
#define BASELINE_UNITS 50

static char *memory;
static uint64_t usual_ns; /* of a unit of work */

static void needs_swap(void)
{
	char line[256];
	int lines = 0;
	FILE *file = fopen("/proc/swaps", "re");

	while (file && fgets(line, sizeof line, file))
		lines++;
	errno = 0;
	if (lines < 2)
		die("this machine has no swap (/proc/swaps)");
	fclose(file);
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* What a unit took, waiting for a CPU taken out. */
static uint64_t unit(uint64_t *random)
{
	uint64_t began = stall_clock();

	for (int i = 0; i < LOOKUPS; i++)
		((volatile char *)memory)[next_random(random) % (MEMORY_BYTES / PAGE_BYTES) * PAGE_BYTES]++;
	return stall_clock() - began;
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS, random = 88172645463325252ULL + (uint64_t)id;

	for (; running(); next += PERIOD_NS) {
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = unit(&random);
		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		mine->ops++;
	}
}

static void *save_memory(void *unused)
{
	(void)unused;
	for (uint64_t next = now_ns(); running(); next += SAVE_PERIOD_NS) {
		sleep_until(next);
		madvise(memory, MEMORY_BYTES, MADV_PAGEOUT);
	}
	return NULL;
}

static void measure_usual(void)
{
	uint64_t random = 88172645463325252ULL;

	usual_ns = UINT64_MAX;
	for (int i = 0; i < BASELINE_UNITS; i++) {
		uint64_t took = unit(&random);

		if (took < usual_ns)
			usual_ns = took;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pthread_t saver;

	needs_swap();
	memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("cannot map %lu bytes", MEMORY_BYTES);
	madvise(memory, MEMORY_BYTES, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < MEMORY_BYTES; at += PAGE_BYTES)
		memory[at] = 1;
#ifdef FIXED
	if (mlock(memory, MEMORY_BYTES))
		die("cannot lock the memory (root is needed)");
#endif
	measure_usual();
	errno = pthread_create(&saver, NULL, save_memory, NULL);
	if (errno)
		die("cannot start a thread");
	pthread_setname_np(saver, "saver");
	sum = run_workers(WORKERS, "worker", serve, seconds);
	pthread_join(saver, NULL);

	printf("%llu units of %d look-ups, %.1f us each in memory, %.1f us more on average; at worst %.1f ms\n",
	       (unsigned long long)sum.ops, LOOKUPS, (double)usual_ns / 1e3,
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3, (double)sum.max_ns / 1e6);
	print_truth(&sum, "%s", "");
	return 0;
}
