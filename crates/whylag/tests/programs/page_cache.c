/*
 * page_cache: reads a file of 8 MiB page by page, which was written around the page cache, puts it out of
 * the page cache in another process, `evictor`, and reads it again; then it is cut, written anew by
 * ordinary writes, put out by this process and read a third time. Prints how many blocks of 512 bytes
 * the kernel says that it read from a disk in each of these: `first=`, `again=`, `third=`, and
 * `evictor=`, its process.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void put_out(void)
{
	if (posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		abort();
}

static pid_t put_out_elsewhere(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		prctl(PR_SET_NAME, "evictor");
		put_out();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		abort();
	return pid;
}

int main(int argc, char **argv)
{
	long first, again, third;
	pid_t evictor;

	file = open(argc > 1 ? argv[1] : "pages.bin", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (file < 0)
		abort();
	write_pages();
	if (fcntl(file, F_SETFL, 0) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		abort();
	first = read_pages();
	evictor = put_out_elsewhere();
	again = read_pages();

	/* What is cut is not put out: it is gone. */
	if (ftruncate(file, 0))
		abort();
	write_pages();
	if (fsync(file))
		abort();
	put_out();
	third = read_pages();
	printf("first=%ld again=%ld third=%ld evictor=%d\n", first, again, third, evictor);
	return 0;
}
