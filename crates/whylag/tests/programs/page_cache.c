/*
 * page_cache: reads a file of 8 MiB page by page, which was written around the page cache, has three
 * quarters of it put out of the page cache by another process, `evictor`, then the rest by one more,
 * and reads it again; then it is cut, written anew by ordinary writes, put out by this process and read
 * a third time. Prints how many blocks of 512 bytes the kernel says that it read from a disk in each of
 * these: `first=`, `again=`, `third=`; and the processes `evictor=` and `other=`, with the pages that
 * they met in the page cache (mincore): `evictor_pages=`, `other_pages=`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 2048L
#define PAGE 4096L

static char page[PAGE] __attribute__((aligned(PAGE)));
static int file;

static long blocks_read(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_inblock;
}

static void write_pages(void)
{
	for (long i = 0; i < PAGES; i++) {
		memset(page, (int)i, PAGE);
		if (pwrite(file, page, PAGE, i * PAGE) != PAGE)
			abort();
	}
}

static long read_pages(void)
{
	long before = blocks_read();

	for (long i = 0; i < PAGES; i++)
		if (pread(file, page, PAGE, i * PAGE) != PAGE)
			abort();
	return blocks_read() - before;
}

static void put_out(long from, long pages)
{
	if (posix_fadvise(file, from * PAGE, pages * PAGE, POSIX_FADV_DONTNEED))
		abort();
}

static long pages_in_cache(long from, long pages)
{
	unsigned char in_cache[PAGES];
	void *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, from * PAGE);
	long n = 0;

	if (at == MAP_FAILED || mincore(at, pages * PAGE, in_cache) || munmap(at, pages * PAGE))
		abort();
	for (long i = 0; i < pages; i++)
		n += in_cache[i] & 1;
	return n;
}

static pid_t put_out_elsewhere(const char *name, long from, long pages, long *met)
{
	pid_t pid;
	int status;

	*met = pages_in_cache(from, pages);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, name);
		put_out(from, pages);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		abort();
	return pid;
}

int main(int argc, char **argv)
{
	long first, again, third, by_evictor, by_other;
	pid_t evictor, other;

	file = open(argc > 1 ? argv[1] : "pages.bin", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (file < 0)
		abort();
	write_pages();
	if (fcntl(file, F_SETFL, 0) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		abort();
	first = read_pages();
	evictor = put_out_elsewhere("evictor", 0, PAGES * 3 / 4, &by_evictor);
	other = put_out_elsewhere("other", PAGES * 3 / 4, PAGES / 4, &by_other);
	again = read_pages();

	/* What is cut is not put out: it is gone. */
	if (ftruncate(file, 0))
		abort();
	write_pages();
	if (fsync(file))
		abort();
	put_out(0, PAGES);
	third = read_pages();
	printf("first=%ld again=%ld third=%ld evictor=%d evictor_pages=%ld other=%d other_pages=%ld\n",
	       first, again, third, evictor, by_evictor, other, by_other);
	return 0;
}
