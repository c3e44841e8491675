/*
 * Touches pages of a file that is not in the page cache, one by one. A child has written it, so
 * this thread does little else. Prints touch=time it took, ran=CPU time in that, queued=waiting for
 * a CPU in that, slept=how often it went to sleep in that, major=major faults by the kernel's
 * count, minor=minor ones since the touching began, and total.major, total.minor since the program
 * began.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define PAGES 512
#define PAGE 4096

static void write_file(int fd)
{
	char page[PAGE];

	memset(page, 7, sizeof page);
	for (int i = 0; i < PAGES; i++)
		if (write(fd, page, PAGE) != PAGE)
			_exit(2);
	_exit(fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0 ? 2 : 0);
}

int main(void)
{
	char path[] = "/var/tmp/whylag-faults-XXXXXX";
	struct rusage before, after;
	volatile char *map;
	uint64_t began, ran, queued;
	int fd = mkstemp(path), status;
	pid_t child;

	if (fd < 0 || unlink(path) < 0 || (child = fork()) < 0)
		return 2;
	if (child == 0)
		write_file(fd);
	if (waitpid(child, &status, 0) != child || status != 0)
		return 2;
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || madvise((void *)map, PAGES * PAGE, MADV_RANDOM) < 0)
		return 2;
	getrusage(RUSAGE_THREAD, &before);
	queued = run_queue_ns();
	began = now_ns();
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < PAGES; i++)
		(void)map[i * PAGE];
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
	began = now_ns() - began;
	queued = run_queue_ns() - queued;
	getrusage(RUSAGE_THREAD, &after);
	printf("touch=%lu ran=%lu queued=%lu slept=%ld ", began, ran, queued,
	       after.ru_nvcsw - before.ru_nvcsw);
	printf("major=%ld minor=%ld ", after.ru_majflt - before.ru_majflt,
	       after.ru_minflt - before.ru_minflt);
	printf("total.major=%ld total.minor=%ld\n", after.ru_majflt, after.ru_minflt);
	return 0;
}
