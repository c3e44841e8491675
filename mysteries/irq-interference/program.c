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
#include "../interrupted-steps.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define BUFFER_PAGES 64    /* and one for the positions */
#ifdef FIXED
#define SAMPLE_NS (10 * MILLISECOND)
#else
#define SAMPLE_NS (40 * MICROSECOND)
#endif

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

int main(int argc, char **argv)
{
	return compute_beside("profiler", profiler, argc, argv);
}
