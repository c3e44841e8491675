/*
 * Spends time in known places of the kernel and prints what it measured there itself: page faults
 * (system time of the thread), sleeps in membarrier (clock around them), calls that fail.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MEMORY (64UL << 20)
#define FAILURES 12345

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static unsigned long long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* CPU time of touching fresh pages, less that of touching them once more. */
static unsigned long long touch(void)
{
	unsigned long long fresh, warm, began = cpu_ns();
	char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	madvise(memory, MEMORY, MADV_NOHUGEPAGE);
	began = cpu_ns();
	for (size_t at = 0; at < MEMORY; at += 4096)
		*(volatile char *)(memory + at) = 1;
	fresh = cpu_ns() - began;
	began = cpu_ns();
	for (size_t at = 0; at < MEMORY; at += 4096)
		*(volatile char *)(memory + at) = 2;
	warm = cpu_ns() - began;
	munmap(memory, MEMORY);
	return fresh > warm ? fresh - warm : 0;
}

int main(void)
{
	unsigned long long faults = 0, membarriers = 0, began, end = now_ns() + 1500000000ULL;
	int pipes[2];
	char byte;

	while (now_ns() < end)
		faults += touch();
	for (int i = 0; i < 20; i++) {
		began = now_ns();
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
			return 1;
		membarriers += now_ns() - began;
	}
	if (pipe2(pipes, O_NONBLOCK))
		return 1;
	for (int i = 0; i < FAILURES; i++)
		if (read(pipes[0], &byte, 1) >= 0)
			return 1;
	printf("faults=%llu membarriers=%llu failures=%d\n", faults, membarriers, FAILURES);
	return 0;
}
