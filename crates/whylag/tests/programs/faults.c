/*
 * Touches pages of a file that is not in the page cache, one by one. Prints touch=time it took,
 * major=major faults by the kernel's count, minor=minor ones since the touching began, and
 * total.major, total.minor since the program began.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"

#define PAGES 512
#define PAGE 4096

int main(void)
{
	char path[] = "/var/tmp/whylag-faults-XXXXXX", page[PAGE];
	struct rusage before, after;
	volatile char *map;
	uint64_t began;
	int fd = mkstemp(path);

	if (fd < 0 || unlink(path) < 0)
		return 2;
	memset(page, 7, sizeof page);
	for (int i = 0; i < PAGES; i++)
		if (write(fd, page, PAGE) != PAGE)
			return 2;
	if (fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		return 2;
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || madvise((void *)map, PAGES * PAGE, MADV_RANDOM) < 0)
		return 2;
	getrusage(RUSAGE_THREAD, &before);
	began = now_ns();
	for (int i = 0; i < PAGES; i++)
		(void)map[i * PAGE];
	began = now_ns() - began;
	getrusage(RUSAGE_THREAD, &after);
	printf("touch=%lu major=%ld minor=%ld total.major=%ld total.minor=%ld\n", began,
	       after.ru_majflt - before.ru_majflt, after.ru_minflt - before.ru_minflt,
	       after.ru_majflt, after.ru_minflt);
	return 0;
}
