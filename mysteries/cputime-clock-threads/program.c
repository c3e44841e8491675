/*
 * A server of a thousand threads, one per connection, nearly all of which wait for their client.
 * One of them answers requests and writes down what CPU time each cost: it reads a clock before
 * and after.
 *
 * Faulty: it reads CLOCK_PROCESS_CPUTIME_ID, for which the kernel adds up the times of all threads
 * of the process, one by one. Fixed (-DFIXED): it reads its own thread's clock.
 */
#include "../idle_threads.h"
#include "../measure.h"

#define CONNECTIONS 1000
#define REQUEST_NS (20 * MICROSECOND)
#define CALIBRATION 2000

#ifdef FIXED
#define ACCOUNTING_CLOCK CLOCK_THREAD_CPUTIME_ID
#else
#define ACCOUNTING_CLOCK CLOCK_PROCESS_CPUTIME_ID
#endif

static uint64_t request_rounds;
static uint64_t ordinary_ns; /* reading the clock of one thread */

/* How long one reading of `clock` takes; its value is added to `used`. */
static uint64_t read_clock(clockid_t clock, uint64_t *used)
{
	uint64_t began = now_ns();

	*used += clock_ns(clock);
	return now_ns() - began;
}

/* The median of many readings of the clock that has only one thread to ask. */
static uint64_t ordinary_reading(void)
{
	static uint64_t took[CALIBRATION];
	uint64_t used = 0;

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = read_clock(CLOCK_THREAD_CPUTIME_ID, &used);
	return median(took, CALIBRATION);
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t before = 0, after = 0;

	(void)id;
	ordinary_ns = ordinary_reading();
	while (running()) {
		uint64_t took = read_clock(ACCOUNTING_CLOCK, &before);

		compute(mine->ops, request_rounds);
		took += read_clock(ACCOUNTING_CLOCK, &after);
		count_loss(mine, above(took, 2 * ordinary_ns));
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	double readings;

	request_rounds = rounds_for(REQUEST_NS);
	start_idle_threads(CONNECTIONS);
	sum = run_workers(1, "request", answer_requests, seconds);
	end_idle_threads();

	readings = 2.0 * (double)(sum.ops ? sum.ops : 1);
	printf("%llu requests; reading the clock takes %.0f ns, the clock of one thread %llu ns\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / readings + (double)ordinary_ns,
	       (unsigned long long)ordinary_ns);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
