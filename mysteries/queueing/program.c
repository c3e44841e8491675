/*
 * A matching engine in small, traced with whylag.h: one thread handles what comes, in order. Most of
 * it are orders, 0.3 ms each. Every hundredth message is a mass quote, and takes 40 ms.
 *
 * Faulty: the mass quote is handled where it stands in the line, and the twenty orders that come
 * meanwhile wait behind it. Fixed (-DFIXED): mass quotes have a line and a thread of their own.
 */
#include "../common.h"
#include "../measure.h"

#include "whylag.h"

#define MESSAGES_PER_SECOND 500
#define PERIOD_NS (SECOND / MESSAGES_PER_SECOND)
#define ORDER_NS (300 * MICROSECOND)
#define MASS_QUOTE_NS (40 * MILLISECOND)
#define ONE_IN 100
#define SLOTS 1024 /* a power of two, more than ever wait */

/* A line that a thread works off: orders, and with the fix mass quotes. */
struct line {
	int pipe[2];
	whylag_flow flow;
};

static struct line orders, mass_quotes;
static whylag_trace traces[SLOTS];
static uint64_t order_rounds, mass_quote_rounds;
static uint64_t began; /* message number n is due n periods later */

static bool is_mass_quote(uint64_t number)
{
	return number % ONE_IN == ONE_IN - 1;
}

/* The line in which a message is handled. */
static struct line *line_of(uint64_t number)
{
#ifdef FIXED
	if (is_mass_quote(number))
		return &mass_quotes;
#endif
	(void)number;
	return &orders;
}

/* When the next message of the same line was due. */
static uint64_t next_due(uint64_t number)
{
	uint64_t next = number + 1;

	while (line_of(next) != line_of(number))
		next++;
	return began + next * PERIOD_NS;
}

static void receive(int id, struct account *mine)
{
	uint64_t number;

	(void)id;
	for (number = 0; running(); number++) {
		whylag_trace *trace = &traces[number % SLOTS];
		uint64_t due = began + number * PERIOD_NS;

		sleep_until(due);
		whylag_begin(trace, is_mass_quote(number) ? &mass_quotes.flow : &orders.flow, number,
			     due);
		whylag_mark(trace, 0);
		if (write(line_of(number)->pipe[1], &number, sizeof number) != sizeof number)
			die("cannot hand a message on");
		mine->ops++;
	}
	close(orders.pipe[1]);
	close(mass_quotes.pipe[1]);
}

/* Works off a line; what is lost is the time in which it had one message and another waited. */
static void work_off(struct line *line, struct account *mine)
{
	whylag_thread thread;
	uint64_t number;

	if (whylag_register(&thread))
		die("%s", whylag_why());
	while (read(line->pipe[0], &number, sizeof number) == sizeof number) {
		whylag_trace *trace = &traces[number % SLOTS];
		uint64_t start = now_ns(), due = next_due(number);

		whylag_logic_start(&thread, trace, WHYLAG_UNKNOWN);
		compute(number, is_mass_quote(number) ? mass_quote_rounds : order_rounds);
		whylag_end(&thread, trace);
		count_loss(mine, above(now_ns(), due > start ? due : start));
		mine->ops++;
	}
	whylag_unregister(&thread);
}

static void match(int id, struct account *mine)
{
	(void)id;
	work_off(&orders, mine);
}

static void quote(int id, struct account *mine)
{
	(void)id;
	work_off(&mass_quotes, mine);
}

static void open_line(struct line *line, const char *name, uint64_t slow_ns)
{
	static const char *const points[] = { "decoded" };

	if (pipe2(line->pipe, O_CLOEXEC))
		die("cannot make a pipe");
	if (whylag_declare(&line->flow, name, points, 1, slow_ns))
		die("%s", whylag_why());
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct worker gateway, engine, quoter;
	struct account received = { 0 }, sum = { 0 };

	order_rounds = rounds_for(ORDER_NS);
	mass_quote_rounds = rounds_for(MASS_QUOTE_NS);
	if (whylag_start(NULL))
		die("%s", whylag_why());
	open_line(&orders, "order", 2 * MILLISECOND);
	open_line(&mass_quotes, "mass-quote", SECOND);

	began = now_ns();
	start_workers(&engine, 1, "engine", match);
	start_workers(&quoter, 1, "quoter", quote);
	start_workers(&gateway, 1, "gateway", receive);
	wait_for_end(seconds);
	join_workers(&gateway, 1, &received);
	join_workers(&engine, 1, &sum);
	join_workers(&quoter, 1, &sum);
	whylag_stop();

	printf("%llu messages, every %dth of them a mass quote\n", (unsigned long long)sum.ops, ONE_IN);
	print_truth(&sum, "%s", "");
	return 0;
}
