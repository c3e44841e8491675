/*
 * Three threads simulate step by step, one step in 5 ms, and meet at a barrier after each.
 *
 * Faulty: one of them shows each step on a display before it goes on, which takes until the next
 * frame, 3 ms. Fixed (-DFIXED): it shows one step in 64.
 */
#include "../measure.h"
#include "../stalls.h"

#define THREADS 3
#define PERIOD_NS (5 * MILLISECOND)
#define WORK_NS (100 * MICROSECOND)
#define FRAME_NS (3 * MILLISECOND)

#ifdef FIXED
#define SHOWN_EVERY 64
#else
#define SHOWN_EVERY 1
#endif

static pthread_barrier_t step;
/* Written by the first thread between two steps, so that all end in the same one. */
static bool is_over;

static void work(uint64_t cpu_ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void simulate(int id, struct account *mine)
{
	uint64_t next = now_ns();

	for (bool last = false; !last; mine->ops++) {
		uint64_t began;

		sleep_until(next += PERIOD_NS);
		work(WORK_NS);
		if (id == 0 && mine->ops % SHOWN_EVERY == 0)
			sleep_until(now_ns() + FRAME_NS);
		began = sleep_clock();
		if (pthread_barrier_wait(&step) == PTHREAD_BARRIER_SERIAL_THREAD)
			is_over = !running();
		else
			count_loss(mine, above(sleep_clock(), began));
		pthread_barrier_wait(&step);
		last = is_over;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	if (pthread_barrier_init(&step, NULL, THREADS))
		die("cannot make a barrier");
	sum = run_workers(THREADS, "simulate", simulate, seconds);
	printf("%llu steps; waiting for the last one is %.0f %% of the threads' time\n",
	       (unsigned long long)(sum.ops / THREADS), share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, "%s", "");
	return 0;
}
