/* Memory in pages of 4 KB, for the mysteries that are about single pages. */
#ifndef MYSTERIES_PAGES_H
#define MYSTERIES_PAGES_H

#include "measure.h"
#include <sys/mman.h>

#define PAGE 4096UL
#define MEGABYTE (1UL << 20)

/* A huge page would be one fault instead of 512. Holds for children, too. */
static inline void only_small_pages(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		die("cannot do without huge pages");
}

/* Own memory that nobody has touched yet. `flags` is 0 or MAP_POPULATE. */
static inline uint8_t *fresh_memory(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot have %zu MB of memory", bytes / MEGABYTE);
	return memory;
}

/* Writes a word of each page. */
static inline void write_pages(uint8_t *memory, size_t bytes, uint64_t value)
{
	for (size_t at = 0; at < bytes; at += PAGE)
		*(volatile uint64_t *)(memory + at) = value;
}

#endif
