/*
 * A process computes on a CPU that it shares with two others: "hog" never sleeps, "guest" runs for
 * 0.3 ms in each 1.3 ms or so, mostly when hog has the CPU. With an argument all three are always
 * ready, and let each other go first every 0.1 ms. Prints cpu.NAME, the CPU time of each
 * by the kernel's own clock: the process waited for all of it. bound.cpu is the CPU.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static void take_turns(uint64_t cpu_ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		spin_cpu_ns(100000);
		sched_yield();
	}
}

static void hog(void) { spin_cpu_ns(3600000000000); }

static void guest(void)
{
	for (;;) {
		uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300000;

		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
			;
		sleep_ms(1);
	}
}

static const struct { const char *name; void (*run)(void); } others[] = {
	{ "hog", hog }, { "guest", guest },
};
#define OTHERS (sizeof others / sizeof *others)

int main(int argc, char **argv)
{
	cpu_set_t allowed, one;
	pid_t other[OTHERS];
	int cpu = 0;

	sched_getaffinity(0, sizeof allowed, &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
	for (size_t i = 0; i < OTHERS; i++) {
		other[i] = fork();
		if (other[i] == 0) {
			prctl(PR_SET_NAME, others[i].name);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (argc > 1)
				take_turns(3600000000000);
			others[i].run();
		}
	}
	if (argc > 1)
		take_turns(500000000);
	else
		spin_cpu_ns(500000000);
	printf("bound.cpu=%d\n", cpu);
	for (size_t i = 0; i < OTHERS; i++) {
		struct rusage used;

		kill(other[i], SIGKILL);
		wait4(other[i], NULL, 0, &used);
		printf("cpu.%s=%ld\n", others[i].name,
		       (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
		       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000);
	}
	return 0;
}
