/*
 * A process computes on a CPU that it shares with two others, "often" and "seldom", which never
 * sleep and of which the second has a tenth of the weight of the first. Prints cpu.NAME, the CPU
 * time of each by the kernel's own clock: what the one that waited saw of them.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static const struct { const char *name; int nice; } hogs[] = { { "often", 0 }, { "seldom", 10 } };
#define HOGS (sizeof hogs / sizeof *hogs)

int main(void)
{
	cpu_set_t allowed, one;
	pid_t hog[HOGS];
	int cpu = 0;

	sched_getaffinity(0, sizeof allowed, &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
	for (size_t i = 0; i < HOGS; i++) {
		hog[i] = fork();
		if (hog[i] == 0) {
			prctl(PR_SET_NAME, hogs[i].name);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setpriority(PRIO_PROCESS, 0, hogs[i].nice);
			spin_cpu_ns(3600000000000);
		}
	}
	spin_cpu_ns(500000000);
	for (size_t i = 0; i < HOGS; i++) {
		struct rusage used;

		kill(hog[i], SIGKILL);
		wait4(hog[i], NULL, 0, &used);
		printf("cpu.%s=%ld\n", hogs[i].name,
		       (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
		       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000);
	}
	return 0;
}
