/*
 * A thread answers requests: 0.4 ms of computing, and the reply is written into a buffer of 512 KiB
 * from an arena.
 *
 * Faulty: the arena only grows, so each buffer is memory that nobody has touched before, and each
 * of its pages is a page fault in the middle of the request: the kernel finds a page, clears it and
 * maps it. Fixed (-DFIXED): the arena has eight buffers, touched before the first request, and uses
 * them in turn.
 *
 * lost_ns: writing each buffer, less writing it a second time.
 */
#include "../measure.h"
#include <sys/mman.h>

#define BUFFER (512UL << 10)
#define PAGE 4096UL
#define COMPUTE_NS (400 * MICROSECOND)
#ifdef FIXED
#define ARENA (8 * BUFFER)
#else
#define ARENA (12UL << 30)
#endif

static char *arena;
static uint64_t compute_rounds;

/* One word into each page: what it costs is the memory, not the writing. */
__attribute__((noinline)) static uint64_t write_reply(char *buffer, uint64_t reply)
{
	uint64_t began = now_ns();

	for (size_t at = 0; at < BUFFER; at += PAGE)
		*(volatile uint64_t *)(buffer + at) = reply;
	return now_ns() - began;
}

static void answer_requests(int id, struct account *mine)
{
	size_t used = 0;

	(void)id;
	while (running() && (used < ARENA || ARENA == 8 * BUFFER)) {
		char *buffer = arena + used % ARENA;
		uint64_t reply = compute(mine->ops, compute_rounds);
		uint64_t first = write_reply(buffer, reply);

		count_loss(mine, above(first, write_reply(buffer, reply)));
		used += BUFFER;
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		die("cannot map %lu MiB", ARENA >> 20);
	madvise(arena, ARENA, MADV_NOHUGEPAGE);
#ifdef FIXED
	memset(arena, 1, ARENA);
#endif
	compute_rounds = rounds_for(COMPUTE_NS);
	sum = run_workers(1, "request", answer_requests, seconds);

	printf("%llu requests, %.0f us each for touching their buffers: %.0f %% of the thread's time\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, "%s", "");
	return 0;
}
