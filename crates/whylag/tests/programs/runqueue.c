/*
 * Three threads and a process that computes all the time, all on one CPU. Prints for each thread
 * cpu.NAME and runq.NAME, its CPU time and run queue time by the kernel's own clocks, and
 * cpu.process.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

/* Nothing but user mode: is preempted. */
static void compute(void) { spin_cpu_ns(200000000); }

/* Sleeps, and waits for the CPU whenever it is woken. */
static void wake(void)
{
	for (int i = 0; i < 50; i++) {
		sleep_ms(2);
		spin_cpu_ns(100000);
	}
}

/* Nothing but system calls. */
static void call(void)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 100000000;
	char path[4096];

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 100; i++)
			if (readlink("/proc/self/exe", path, sizeof path) < 0)
				abort();
}

static struct worker {
	const char *name;
	void (*body)(void);
	pthread_t thread;
	uint64_t cpu_ns, run_queue_ns;
	struct life life;
} workers[] = {
	{ .name = "compute", .body = compute },
	{ .name = "wake", .body = wake },
	{ .name = "call", .body = call },
};
#define WORKERS (sizeof workers / sizeof *workers)

static void *thread_main(void *argument)
{
	struct worker *self = argument;

	self->life.began_ns = now_ns();
	pthread_setname_np(pthread_self(), self->name);
	self->body();
	self->run_queue_ns = run_queue_ns();
	self->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	self->life.ended_ns = now_ns();
	return NULL;
}

int main(void)
{
	cpu_set_t allowed, one;
	pid_t hog;
	int cpu = 0;

	sched_getaffinity(0, sizeof allowed, &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
	hog = fork();
	if (hog == 0) {
		prctl(PR_SET_NAME, "hog");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		spin_cpu_ns(3600000000000);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		workers[i].life.made_ns = now_ns();
		pthread_create(&workers[i].thread, NULL, thread_main, &workers[i]);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		print_life(workers[i].name, &workers[i].life);
		printf("cpu.%s=%lu runq.%s=%lu\n", workers[i].name, workers[i].cpu_ns,
		       workers[i].name, workers[i].run_queue_ns);
	}
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	printf("cpu.process=%lu\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
