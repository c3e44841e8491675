/*
 * A matching engine in small, traced with whylag.h. Since its last release it keeps statistics of
 * every step: between any two messages that it publishes it reads the clock a hundred times.
 *
 * One program for both: healthy where a read of the clock is a few instructions, and many times
 * slower where it is not. slow_read.c makes it so, or a host whose clocksource is hpet.
 */
#include "../common.h"
#include "../measure.h"

#include "whylag.h"

#define ORDERS_PER_SECOND 400
#define STEP_NS (5 * MICROSECOND)
#define READS 100
#define ORDINARY_READ_NS 25
#define SLOTS 64 /* a power of two */

enum { DECODED };
static const char *const points[] = { "decoded" };
static const char *const names[] = { "ack", "fill", "trade-report", "market-data" };
#define STEPS (sizeof names / sizeof *names)

static whylag_flow flow;
static whylag_publish publishes[STEPS];
static whylag_trace traces[SLOTS];
static int orders[2]; /* a pipe of order numbers */
static uint64_t step_rounds;

/* Receives orders at a constant rate and hands them on. */
static void receive(int id, struct account *mine)
{
	uint64_t next = now_ns();
	uint64_t order;

	(void)id;
	for (order = 0; running(); order++) {
		sleep_until(next);
		whylag_begin(&traces[order % SLOTS], &flow, order, next);
		whylag_mark(&traces[order % SLOTS], DECODED);
		if (write(orders[1], &order, sizeof order) != sizeof order)
			die("cannot hand an order on");
		mine->ops++;
		next += SECOND / ORDERS_PER_SECOND;
	}
	close(orders[1]);
}

/* What the release added. Gives what it cost above the ordinary. */
static uint64_t keep_statistics(void)
{
	uint64_t began = now_ns(), now = began;

	for (int i = 1; i < READS; i++)
		now = now_ns();
	return above(now - began, READS * ORDINARY_READ_NS);
}

static void match(int id, struct account *mine)
{
	whylag_thread thread;
	uint64_t order;

	(void)id;
	if (whylag_register(&thread))
		die("%s", whylag_why());
	while (read(orders[0], &order, sizeof order) == sizeof order) {
		whylag_trace *trace = &traces[order % SLOTS];

		whylag_logic_start(&thread, trace, WHYLAG_UNKNOWN);
		for (size_t step = 0; step < STEPS; step++) {
			compute(order, step_rounds);
			count_loss(mine, keep_statistics());
			whylag_published(&thread, trace, publishes[step]);
		}
		whylag_end(&thread, trace);
		mine->ops++;
	}
	whylag_unregister(&thread);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct worker gateway, engine;
	struct account received = { 0 }, sum = { 0 };

	step_rounds = rounds_for(STEP_NS);
	if (pipe2(orders, O_CLOEXEC))
		die("cannot make a pipe");
	if (whylag_start(NULL) || whylag_declare(&flow, "order", points, 1, MILLISECOND))
		die("%s", whylag_why());
	for (size_t step = 0; step < STEPS; step++)
		if (whylag_name_publish(&flow, names[step], &publishes[step]))
			die("%s", whylag_why());

	start_workers(&engine, 1, "engine", match);
	start_workers(&gateway, 1, "gateway", receive);
	wait_for_end(seconds);
	join_workers(&gateway, 1, &received);
	join_workers(&engine, 1, &sum);
	whylag_stop();

	printf("%llu orders, each with %zu publishes and %d reads of the clock before each\n",
	       (unsigned long long)sum.ops, STEPS, READS);
	print_truth(&sum, " reads=%llu", (unsigned long long)(sum.ops * STEPS * READS));
	return 0;
}
