/*
 * Two control loops wake every 5 ms and compute for about 1 ms. On the same machine a batch job
 * runs more processes than there are CPUs, and they never sleep.
 *
 * Faulty: the batch has the same standing as the control loops, so these wait in the run queue
 * when they wake and again whenever their slice is over. Fixed (-DFIXED): the batch runs as
 * SCHED_IDLE and gives way at once.
 */
#include "../common.h"
#include <sched.h>

#define THREADS 2
#define HOGS_PER_CPU 2
#define MAX_HOGS 512
#define PERIOD_NS (5 * MILLISECOND)
#define WORK_NS MILLISECOND

static uint64_t work_rounds;
static _Atomic uint64_t late_sum_ns, stretch_sum_ns, missed;

static void batch(void *unused)
{
	(void)unused;
#ifdef FIXED
	if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 }))
		die("cannot choose SCHED_IDLE");
#endif
	for (;;)
		compute(0, 1000000);
}

static void control_loop(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;

	prctl(PR_SET_TIMERSLACK, 1); /* else 50 us of lateness are nobody's fault */
	for (; running(); next += PERIOD_NS) {
		uint64_t due, woke, ran, late, stretch;

		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		due = now_ns(); /* a cycle that began too late is not counted twice */
		if (due < next)
			due = next;
		sleep_until(next);
		woke = now_ns();
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		compute((uint64_t)id, work_rounds);
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		late = woke - due;
		stretch = now_ns() - woke;
		stretch = stretch > ran ? stretch - ran : 0;
		late_sum_ns += late;
		stretch_sum_ns += stretch;
		count_loss(mine, late + stretch);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	long hogs = sysconf(_SC_NPROCESSORS_ONLN) * HOGS_PER_CPU + 1;
	pid_t hog[MAX_HOGS];
	struct account sum;
	double ops;

	if (hogs > MAX_HOGS)
		hogs = MAX_HOGS;
	work_rounds = rounds_for(WORK_NS);
	for (long i = 0; i < hogs; i++)
		hog[i] = start_process("batch-hog", batch, NULL);
	sum = run_workers(THREADS, "control", control_loop, seconds);
	for (long i = 0; i < hogs; i++)
		end_process(hog[i]);

	ops = sum.ops ? (double)sum.ops : 1;
	printf("%llu cycles of 5 ms with %ld batch processes, %llu missed\n",
	       (unsigned long long)sum.ops, hogs, (unsigned long long)missed);
	printf("a cycle starts %.0f us late and is stretched by %.0f us on average, %.1f ms lost at worst\n",
	       (double)late_sum_ns / ops / 1e3, (double)stretch_sum_ns / ops / 1e3,
	       (double)sum.max_ns / 1e6);
	print_truth(&sum, " late_ns=%llu stretch_ns=%llu missed=%llu", (unsigned long long)late_sum_ns,
		    (unsigned long long)stretch_sum_ns, (unsigned long long)missed);
	return 0;
}
