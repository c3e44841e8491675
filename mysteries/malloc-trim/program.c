/*
 * A thread parses messages: for each it allocates 48 nodes of 32 KiB, writes them, computes for
 * 0.2 ms, and frees them all.
 *
 * Faulty: as malloc is set by default, memory at the end of the heap goes back to the kernel as
 * soon as 128 KiB of it are free. So each message takes its memory from the kernel page by page
 * (brk, page faults) and gives it all back (brk). Fixed (-DFIXED): M_TRIM_THRESHOLD of 64 MiB, the
 * memory stays.
 *
 * lost_ns: each message's time for malloc, writing and free above the median of messages that the
 * same program parsed with a high threshold before it began.
 */
#include "../measure.h"
#include <malloc.h>

#define NODES 48
#define NODE (32UL << 10)
#define PAGE 4096UL
#define COMPUTE_NS (200 * MICROSECOND)
#define BASELINE 500
#define DEFAULT_THRESHOLD (128 << 10)
#define HIGH_THRESHOLD (64 << 20)

static uint64_t compute_rounds, ordinary_ns;

/* Time for memory only. */
static uint64_t parse(uint64_t message)
{
	char *nodes[NODES];
	uint64_t began = now_ns(), took;

	for (int i = 0; i < NODES; i++) {
		nodes[i] = malloc(NODE);
		if (!nodes[i])
			die("no memory");
		for (size_t at = 0; at < NODE; at += PAGE)
			*(volatile uint64_t *)(nodes[i] + at) = message;
	}
	took = now_ns() - began;
	compute(message, compute_rounds);
	began = now_ns();
	for (int i = 0; i < NODES; i++)
		free(nodes[i]);
	return took + now_ns() - began;
}

static uint64_t measure_ordinary(void)
{
	static uint64_t took[BASELINE];

	mallopt(M_TRIM_THRESHOLD, HIGH_THRESHOLD);
	for (size_t i = 0; i < BASELINE; i++)
		took[i] = parse(i);
	return median(took, BASELINE);
}

static void parse_messages(int id, struct account *mine)
{
	(void)id;
	ordinary_ns = measure_ordinary();
#ifndef FIXED
	mallopt(M_TRIM_THRESHOLD, DEFAULT_THRESHOLD);
#endif
	for (; running(); mine->ops++)
		count_loss(mine, above(parse(mine->ops), ordinary_ns));
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	/* The thread uses the heap that grows and shrinks by brk, as a one-threaded program does. */
	mallopt(M_ARENA_MAX, 1);
	compute_rounds = rounds_for(COMPUTE_NS);
	sum = run_workers(1, "parse", parse_messages, seconds);

	printf("%llu messages, %.0f us each for memory beyond the ordinary %llu us: %.0f %% of the thread's time\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3,
	       (unsigned long long)(ordinary_ns / 1000), share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, "%s", "");
	return 0;
}
