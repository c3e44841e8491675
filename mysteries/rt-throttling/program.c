/*
 * A control loop of real-time priority with a tick each millisecond. It polls its device between
 * ticks and never sleeps. An ordinary thread is kept on the same CPU, as kernel threads and
 * agents are on any.
 *
 * Faulty: so that ordinary threads are not starved the kernel gives them 50 ms of each second
 * (the fair server; sched_rt_runtime_us before Linux 6.12), all at once: fifty ticks are late,
 * once a second. Fixed (-DFIXED): the loop polls only in the last four fifths of each millisecond
 * and sleeps before; the ordinary thread gets its part there, and nothing is taken.
 */
#include "../ticks.h"
#include <sched.h>

#define PERIOD_NS MILLISECOND
#define SLEEP_NS (200 * MICROSECOND)
#define LOOP_PRIORITY 10

static int cpu;

static void stay_on_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot stay on CPU %d", cpu);
}

static void work_ordinarily(void *unused)
{
	(void)unused;
	stay_on_cpu();
	for (;;)
		compute(0, 100000);
}

static void control(int id, struct account *mine)
{
	uint64_t due;

	(void)id;
	stay_on_cpu();
	prctl(PR_SET_TIMERSLACK, 1);
	if (sched_setscheduler(0, SCHED_FIFO,
			       &(struct sched_param){ .sched_priority = LOOP_PRIORITY }))
		die("cannot become a real-time thread (needs CAP_SYS_NICE)");
	for (due = now_ns() + PERIOD_NS; running(); due += PERIOD_NS) {
		uint64_t now;

#ifdef FIXED
		sleep_until(due - PERIOD_NS + SLEEP_NS);
#endif
		while ((now = now_ns()) < due)
			compute(now, 10);
		tell_tick(mine, due, now);
	}
}

/* The last CPU that we may use. */
static int last_cpu(void)
{
	cpu_set_t set;
	int last = 0;

	if (sched_getaffinity(0, sizeof set, &set))
		die("cannot read which CPUs there are");
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			last = i;
	}
	return last;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t neighbour;

	cpu = last_cpu();
	neighbour = start_process("ordinary", work_ordinarily, NULL);
	sum = run_timers("control", control, seconds);
	end_process(neighbour);

	printf("%llu ticks, late by %.0f us on average, %.0f us at most\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / 1e3 / (double)sum.ops,
	       (double)sum.max_ns / 1e3);
	print_truth(&sum, "%s", "");
	return 0;
}
