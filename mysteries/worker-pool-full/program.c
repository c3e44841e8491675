/*
 * What the program does, as a user would describe it.
 *
 * Faulty: what makes it slow. Fixed (-DFIXED): the same work without that.
 */
#include "../common.h"

#define THREADS 4
#define PERIOD_NS (2 * MILLISECOND)

/* Does one unit of work, and returns what the fault cost, by the clock around it. */
static uint64_t work(int id, uint64_t number)
{
	uint64_t began = now_ns();

	(void)id;
	(void)number;
#ifndef FIXED
	/* The fault. */
#endif
	return now_ns() - began;
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS;

	for (; running(); next += PERIOD_NS) {
		sleep_until(next);
		count_loss(mine, work(id, mine->ops));
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum = run_workers(THREADS, "worker", serve, seconds);

	printf("%llu units of work\n", (unsigned long long)sum.ops);
	print_truth(&sum, "%s", "");
	return 0;
}
