/*
 * Eight threads of a service are kept on one CPU and answer a request every 5 ms each, 0.1 ms of
 * computing. On the same CPU a control process of real-time priority was started; it polls its
 * device and never sleeps.
 *
 * Faulty: SCHED_FIFO comes before everything else, so the service runs only when the kernel takes
 * the CPU away from real-time threads, about 50 ms of each second. Fixed (-DFIXED): the control
 * process sleeps until the device can have something new.
 */
#include "../common.h"
#include <sched.h>

#define THREADS 8
#define PERIOD_NS (5 * MILLISECOND)
#define WORK_NS (100 * MICROSECOND)
#define HOG_PRIORITY 40

static int cpu;
static uint64_t work_rounds;
static _Atomic uint64_t missed;

static void stay_on_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot stay on CPU %d", cpu);
}

static void control(void *unused)
{
	(void)unused;
	stay_on_cpu();
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = HOG_PRIORITY }))
		die("cannot become a real-time process (needs CAP_SYS_NICE)");
	for (;;) {
		compute(0, work_rounds / 5);
#ifdef FIXED
		sleep_until(now_ns() + PERIOD_NS);
#endif
	}
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t began = now_ns(), next;

	stay_on_cpu();
	prctl(PR_SET_TIMERSLACK, 1); /* else 50 us of lateness are nobody's fault */
	count_loss(mine, now_ns() - began);
	next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;
	for (; running(); next += PERIOD_NS) {
		uint64_t due, woke, ran, stretch;

		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		due = now_ns(); /* a request that was begun too late is not counted twice */
		if (due < next)
			due = next;
		sleep_until(next);
		woke = now_ns();
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		compute((uint64_t)id, work_rounds);
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		stretch = now_ns() - woke;
		stretch = stretch > ran ? stretch - ran : 0;
		count_loss(mine, woke - due + stretch);
		mine->ops++;
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
	pid_t hog;

	cpu = last_cpu();
	work_rounds = rounds_for(WORK_NS);
	hog = start_process("rt-control", control, NULL);
	sum = run_workers(THREADS, "service", answer_requests, seconds);
	end_process(hog);

	printf("%llu requests answered, %llu missed\n", (unsigned long long)sum.ops,
	       (unsigned long long)missed);
	printf("the service lost %.0f %% of its time to the real-time process, %.0f ms at worst\n",
	       share(sum.lost_ns, sum.wall_ns), (double)sum.max_ns / 1e6);
	print_truth(&sum, " missed=%llu", (unsigned long long)missed);
	return 0;
}
