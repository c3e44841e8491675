/*
 * A service with one GiB of memory answers 1,000 requests a second in each of two threads; every
 * request maps a scratch buffer, uses it and unmaps it. Next to it runs a monitoring agent, a
 * process of its own, that asks twenty times a second how much memory the service uses.
 *
 * Faulty: the agent adds up /proc/PID/smaps, for which the kernel walks every page table entry
 * and holds the service's mmap_lock for reading. Fixed (-DFIXED): it reads /proc/PID/statm,
 * counters that need no lock.
 */
#include "../common.h"
#include <sys/mman.h>

#define ARENAS 4
#define GUARD_BYTES 4096 /* keeps the kernel from merging two arenas into one mapping */
#define SCRATCH_BYTES (256 << 10)
#define THREADS 2
#define REQUEST_PERIOD_NS MILLISECOND
#define AGENT_PERIOD_NS (50 * MILLISECOND)

#ifdef FIXED
#define AGENT_FILE "statm"
#else
#define AGENT_FILE "smaps"
#endif

static uint64_t uncontended_ns; /* mapping and unmapping one scratch buffer, nobody else there */

/* Reads the whole file and returns what its "Rss:" lines add up to, or its length if none. */
static uint64_t resident(FILE *file)
{
	char line[512];
	uint64_t kib = 0, length = 0;

	while (fgets(line, sizeof line, file)) {
		unsigned long long one;

		length += strlen(line);
		if (sscanf(line, "Rss: %llu kB", &one) == 1)
			kib += one;
	}
	return kib ? kib : length;
}

static void agent(void *service)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/" AGENT_FILE, *(pid_t *)service);
	for (uint64_t next = now_ns();; next += AGENT_PERIOD_NS) {
		FILE *file;

		sleep_until(next);
		file = fopen(path, "re");
		if (!file)
			return;
		if (!resident(file))
			return;
		fclose(file);
	}
}

static uint64_t serve(void)
{
	uint64_t began = now_ns(), mapped, used;
	uint8_t *scratch = mmap(NULL, SCRATCH_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (scratch == MAP_FAILED)
		die("cannot map a scratch buffer");
	mapped = now_ns();
	for (int page = 0; page < 8; page++)
		scratch[page * 4096] = 1;
	used = now_ns();
	munmap(scratch, SCRATCH_BYTES);
	return mapped - began + now_ns() - used;
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * REQUEST_PERIOD_NS / THREADS;

	for (; running(); next += REQUEST_PERIOD_NS) {
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = serve();
		count_loss(mine, took > uncontended_ns ? took - uncontended_ns : 0);
		mine->ops++;
	}
}

static uint8_t *populate_arena(size_t bytes)
{
	uint8_t *arena = mmap(NULL, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (arena == MAP_FAILED || mprotect(arena + bytes, GUARD_BYTES, PROT_NONE) ||
	    madvise(arena, bytes, MADV_NOHUGEPAGE) || madvise(arena, bytes, MADV_POPULATE_WRITE))
		die("cannot get %zu MiB of memory (ask for less: SECONDS MIB)", bytes >> 20);
	return arena;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	size_t arena_bytes = (size_t)argument(argc, argv, 2, "MIB", ARENAS, 65536, 1024) / ARENAS << 20;
	pid_t service = getpid();
	struct account sum;
	pid_t monitor;

	uncontended_ns = UINT64_MAX;
	for (int i = 0; i < 100; i++) {
		uint64_t took = serve();

		if (took < uncontended_ns)
			uncontended_ns = took;
	}
	for (int i = 0; i < ARENAS; i++)
		populate_arena(arena_bytes);
	monitor = start_process(AGENT_FILE "-agent", agent, &service);
	sum = run_workers(THREADS, "request", answer_requests, seconds);
	end_process(monitor);

	printf("%llu requests; the agent reads /proc/%d/" AGENT_FILE "\n",
	       (unsigned long long)sum.ops, service);
	printf("a request waits %.1f us for its buffer on average, %.1f ms at worst (alone: %.1f us)\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3, (double)sum.max_ns / 1e6,
	       (double)uncontended_ns / 1e3);
	print_truth(&sum, " uncontended_ns=%llu", (unsigned long long)uncontended_ns);
	return 0;
}
