/*
 * A clock like hpet, for a host that has none: every clock_gettime of a clock that the vDSO would
 * serve is a real system call, and takes as long as hpet's, because it is made until then.
 *
 * To be preloaded into everything that is to see the clock of such a host, whylag included:
 *
 *     LD_PRELOAD=$PWD/mysteries/bin/slow-clocksource.so whylag record -- mysteries/bin/slow-clocksource
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define READ_NS 1500 /* hpet, alone: 600; with 4 readers 1,400 */

static uint64_t kernel_time(clockid_t clock, struct timespec *time)
{
	return syscall(SYS_clock_gettime, clock, time) ? 0
		: (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

__attribute__((visibility("default")))
int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t began;

	/* The clocks of processes and threads are system calls everywhere. */
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME)
		return (int)syscall(SYS_clock_gettime, clock, time);
	began = kernel_time(clock, time);
	while (began && kernel_time(clock, time) < began + READ_NS)
		;
	return began ? 0 : -1;
}
