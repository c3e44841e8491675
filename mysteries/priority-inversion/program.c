/*
 * Three control loops of high real-time priority read a set point every 20 ms, under a mutex. A
 * background thread of ordinary priority writes it, which takes 0.5 ms, under the same mutex. A
 * camera process of middle priority computes for 12 ms of each 20. All share one CPU.
 *
 * Faulty: when the camera gets its picture while the background thread has the mutex, that thread
 * is off the CPU for as long as the camera computes, and the control loops, which come before the
 * camera, wait for it. Fixed (-DFIXED): the mutex lends its holder the priority of those who wait
 * (PTHREAD_PRIO_INHERIT).
 */
#include "../common.h"
#include <sched.h>

#define LOOPS 3
#define CONTROL_PRIORITY 30
#define CAMERA_PRIORITY 20
#define PERIOD_NS (20 * MILLISECOND)
#define WRITE_NS (500 * MICROSECOND)
#define READ_NS (20 * MICROSECOND)
#define PICTURE_NS (12 * MILLISECOND)
/* Within a period the writer begins first, then the picture comes, then the loops read. */
#define PICTURE_AT_NS (200 * MICROSECOND)
#define READ_AT_NS (600 * MICROSECOND)

static int cpu;
static uint64_t start_ns;
static uint64_t write_rounds, read_rounds, picture_rounds;
static pthread_mutex_t set_point_lock;
static uint64_t set_point;
static _Atomic uint64_t missed;

static void stay_on_cpu(int priority)
{
	struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot stay on CPU %d", cpu);
	prctl(PR_SET_TIMERSLACK, 1);
	if (priority && sched_setscheduler(0, SCHED_FIFO, &param))
		die("cannot become a real-time thread (needs CAP_SYS_NICE)");
}

/* The next time of `next`, `next` + a period ... that is not over. */
static uint64_t still_to_come(uint64_t next, bool count)
{
	for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
		missed += count;
	return next;
}

static void camera(void *unused)
{
	uint64_t next = start_ns + PICTURE_AT_NS;

	(void)unused;
	stay_on_cpu(CAMERA_PRIORITY);
	for (;; next += PERIOD_NS) {
		next = still_to_come(next, false);
		sleep_until(next);
		compute(0, picture_rounds);
	}
}

static void *write_set_points(void *unused)
{
	uint64_t next = start_ns;

	(void)unused;
	pthread_setname_np(pthread_self(), "background");
	stay_on_cpu(0);
	for (; running(); next += PERIOD_NS) {
		next = still_to_come(next, false);
		sleep_until(next);
		pthread_mutex_lock(&set_point_lock);
		set_point = compute(set_point, write_rounds);
		pthread_mutex_unlock(&set_point_lock);
	}
	return NULL;
}

static void control_loop(int id, struct account *mine)
{
	uint64_t next = start_ns + READ_AT_NS;

	stay_on_cpu(CONTROL_PRIORITY);
	for (; running(); next += PERIOD_NS) {
		uint64_t began, waited;

		next = still_to_come(next, true);
		sleep_until(next);
		began = now_ns();
		pthread_mutex_lock(&set_point_lock);
		waited = now_ns() - began;
		compute(set_point + (uint64_t)id, read_rounds);
		pthread_mutex_unlock(&set_point_lock);
		count_loss(mine, waited);
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

static void make_lock(void)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
#ifdef FIXED
	pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
#endif
	pthread_mutex_init(&set_point_lock, &how);
	pthread_mutexattr_destroy(&how);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pthread_t background;
	struct account sum;
	pid_t child;

	cpu = last_cpu();
	write_rounds = rounds_for(WRITE_NS);
	read_rounds = rounds_for(READ_NS);
	picture_rounds = rounds_for(PICTURE_NS);
	make_lock();
	start_ns = now_ns() + PERIOD_NS;
	child = start_process("camera", camera, NULL);
	errno = pthread_create(&background, NULL, write_set_points, NULL);
	if (errno)
		die("cannot start the background thread");
	sum = run_workers(LOOPS, "control", control_loop, seconds);
	end_process(child);
	pthread_join(background, NULL);

	printf("%llu readings of the set point, %llu missed\n", (unsigned long long)sum.ops,
	       (unsigned long long)missed);
	printf("a reading waits %.0f us for the mutex on average, %.1f ms at worst: %.0f %% of the loops' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " missed=%llu", (unsigned long long)missed);
	return 0;
}
