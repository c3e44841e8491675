/*
 * A thread has a CPU to itself, the first, and computes. A neighbour profiles that CPU: a timer
 * interrupts whatever runs there and writes down its stack, as profilers do that the whole host is
 * sampled by.
 *
 * Faulty: the profiler was told to sample every 40 us, 25,000 times a second. Fixed (-DFIXED): every
 * 10 ms.
 *
 * Needs root. The sampling ends with the neighbour.
 */
#include "../common.h"
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define VICTIM_CPU 0
#define NEIGHBOUR_CPU 1
#define STEP_NS 200
#define GAP_NS MICROSECOND /* a step that took longer was interrupted */
#define BUFFER_PAGES 64    /* and one for the positions */
#ifdef FIXED
#define SAMPLE_NS (10 * MILLISECOND)
#else
#define SAMPLE_NS (40 * MICROSECOND)
#endif

static uint64_t step_rounds;
static _Atomic uint64_t gaps;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot run on CPU %d (two CPUs are needed)", cpu);
}

/* Samples of whatever runs on the victim's CPU, which the kernel overwrites as they come. */
static void sample(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = SAMPLE_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.write_backward = 1,
		.disabled = 1,
	};
	size_t length = (BUFFER_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, VICTIM_CPU, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("cannot sample CPU %d (root is needed)", VICTIM_CPU);
	if (mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		die("cannot map the buffer of the samples");
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		die("cannot begin to sample");
}

static void profiler(void *unused)
{
	(void)unused;
	pin(NEIGHBOUR_CPU);
	sample();
	for (;;)
		pause();
}

/*
 * Short steps of computing, each with a look at the clock. What a step took beyond its ordinary
 * length is time in which the CPU did something else for a while. What the kernel counts as waiting
 * for the CPU is taken out: another thread had it then.
 */
static void work(int id, struct account *mine)
{
	uint64_t x = (uint64_t)id, last, waited;

	pin(VICTIM_CPU);
	waited = runq_ns();
	for (last = now_ns(); running(); mine->ops++) {
		uint64_t now, took;

		x = compute(x, step_rounds);
		now = now_ns();
		took = now - last;
		last = now;
		if (took > GAP_NS) {
			count_loss(mine, took - STEP_NS);
			gaps++;
		}
	}
	waited = runq_ns() - waited;
	mine->lost_ns -= waited < mine->lost_ns ? waited : mine->lost_ns;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t neighbour;

	step_rounds = rounds_for(STEP_NS);
	neighbour = start_process("profiler", profiler, NULL);
	sum = run_workers(1, "worker", work, seconds);
	end_process(neighbour);

	printf("%.0f steps/s\n", (double)sum.ops * 1e9 / (double)sum.wall_ns);
	printf("%llu gaps in the worker's time, %.1f us on average, %.2f ms at worst: %.0f %% of its time\n",
	       (unsigned long long)gaps, (double)sum.lost_ns / (double)(gaps ? gaps : 1) / 1e3,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " gaps=%llu", (unsigned long long)gaps);
	return 0;
}
