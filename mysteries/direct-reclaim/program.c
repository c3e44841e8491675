/*
 * Most of the machine's memory is used by another program, the tenant. A third one, the backup, reads
 * files from end to end. Two threads answer requests, each in a fresh buffer of 16 MiB.
 *
 * Faulty: what the backup has read stays in the page cache until all memory is used, so a request's new
 * pages have to be won back first: faster than kswapd does, so by the thread that needs them. Fixed
 * (-DFIXED): the backup drops what it has read (posix_fadvise), and memory stays free.
 *
 * What a page costs without reclaim is measured in the same run, before memory is filled; a page that
 * takes four times as long is a stall. Waiting for a CPU is left out. All memory is filled: it runs in a
 * small machine only.
 */
#include "../small_machine.h"
#include "../stalls.h"

#define WORKERS 2
#define BUFFER_BYTES (16UL << 20)
#define LEFT_BYTES (256UL << 20) /* what the tenant leaves */
#define FILE_BYTES (4UL << 30)   /* all of it a hole: no disk is read */
#define PIECE_BYTES (256UL << 10)
#define PERIOD_NS (50 * MILLISECOND)
#define READ_PERIOD_NS (2 * MILLISECOND)
#define BASELINE_BUFFERS 3
#define STALL_FACTOR 4 /* times what a page usually takes is a stall */

static uint64_t usual_ns; /* of a page */

/* Should the kernel have to kill somebody, then these. */
static void expendable(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		die("cannot write oom_score_adj");
	close(fd);
}

static void tenant(void *ready)
{
	uint64_t available = meminfo_bytes("MemAvailable");
	size_t bytes = available > LEFT_BYTES ? available - LEFT_BYTES : 0;

	expendable();
	touch_pages(map_small_pages(bytes), bytes);
	if (write(*(int *)ready, "x", 1) != 1)
		die("cannot say that memory is filled");
	for (;;)
		pause();
}

static void backup(void *ready)
{
	int fd = nameless_file("/var/tmp");
	char *piece = map_small_pages(PIECE_BYTES);
	uint64_t filling = LEFT_BYTES;

	expendable();
	if (ftruncate(fd, FILE_BYTES))
		die("cannot make a file of %lu bytes", FILE_BYTES);
	for (uint64_t at = 0;; at = (at + PIECE_BYTES) % FILE_BYTES) {
		if (pread(fd, piece, PIECE_BYTES, (off_t)at) < 0)
			die("cannot read the file");
#ifdef FIXED
		posix_fadvise(fd, (off_t)at, PIECE_BYTES, POSIX_FADV_DONTNEED);
#endif
		if (at < filling)
			continue;
		if (filling && write(*(int *)ready, "x", 1) != 1)
			die("cannot say that the file was read");
		filling = 0;
		sleep_until(now_ns() + READ_PERIOD_NS);
	}
}

/* Touches new pages; returns what those took together that took more than `stall_ns` each, less the
 * time in which the thread waited for a CPU. */
static uint64_t use_buffer(char *buffer, uint64_t stall_ns, uint64_t *all_ns)
{
	uint64_t queued = queued_ns(), stalled = 0, began = now_ns(), before = began, now = began;

	for (size_t at = 0; at < BUFFER_BYTES; at += PAGE_BYTES) {
		((volatile char *)buffer)[at] = 1;
		now = now_ns();
		if (now - before > stall_ns)
			stalled += now - before;
		before = now;
	}
	queued = queued_ns() - queued;
	if (all_ns)
		*all_ns += now - began - (queued < now - began ? queued : now - began);
	madvise(buffer, BUFFER_BYTES, MADV_DONTNEED);
	return stalled > queued ? stalled - queued : 0;
}

static void serve(int id, struct account *mine)
{
	char *buffer = map_small_pages(BUFFER_BYTES);
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / WORKERS;

	for (; running(); next += PERIOD_NS) {
		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		count_loss(mine, use_buffer(buffer, STALL_FACTOR * usual_ns, NULL));
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t pids[2];
	int ready[2];
	char *buffer, byte;

	only_in_a_small_machine();
	buffer = map_small_pages(BUFFER_BYTES);
	for (int i = 0; i < BASELINE_BUFFERS; i++)
		use_buffer(buffer, UINT64_MAX, &usual_ns);
	usual_ns /= BASELINE_BUFFERS * (BUFFER_BYTES / PAGE_BYTES);
	if (pipe2(ready, O_CLOEXEC))
		die("cannot make a pipe");
	pids[0] = start_process("tenant", tenant, &ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the tenant does not fill memory");
	pids[1] = start_process("backup", backup, &ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the backup does not read");
	sum = run_workers(WORKERS, "worker", serve, seconds);
	end_process(pids[1]);
	end_process(pids[0]);

	printf("%llu buffers; without reclaim a page takes %llu ns\n", (unsigned long long)sum.ops,
	       (unsigned long long)usual_ns);
	printf("each loses %.2f ms on average; at worst %.1f ms: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, "%s", "");
	return 0;
}
