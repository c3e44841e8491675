/*
 * For mysteries that fill the memory of the whole machine: they do so in a small one only, a virtual
 * machine of the lab (make test-kernels).
 */
#ifndef MYSTERIES_SMALL_MACHINE_H
#define MYSTERIES_SMALL_MACHINE_H

#include "common.h"
#include <sys/mman.h>

#define LARGEST_BYTES (4ULL << 30)
#define PAGE_BYTES 4096UL

/* A row of /proc/meminfo. */
static inline uint64_t meminfo_bytes(const char *name)
{
	char line[128], found[64];
	unsigned long long kilobytes;
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		die("cannot read /proc/meminfo");
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "%63[^:]: %llu kB", found, &kilobytes) == 2 && !strcmp(found, name)) {
			fclose(file);
			return kilobytes << 10;
		}
	}
	errno = 0;
	die("there is no %s in /proc/meminfo", name);
}

static inline void only_in_a_small_machine(void)
{
	errno = 0;
	if (meminfo_bytes("MemTotal") > LARGEST_BYTES)
		die("this machine has more than 4 GiB of memory, and all of it would be filled: run it in a "
		    "virtual machine (scripts/lab)");
}

/* New memory in small pages, none of them there yet. */
static inline char *map_small_pages(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot map %zu bytes", bytes);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static inline void touch_pages(char *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		((volatile char *)memory)[at] = 1;
}

#endif
