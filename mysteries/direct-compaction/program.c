/*
 * Another program, the tenant, has half of each 8 KiB of memory, as heaps do that are old: what is free
 * is in single pages. A thread asks for pieces of 2 MiB, as it fills a cache.
 *
 * Faulty: it asks for huge pages (MADV_HUGEPAGE), and for each one the kernel first has to move pages of
 * the tenant together. Fixed (-DFIXED): it takes small pages.
 *
 * What touching a piece costs is measured in the same run, before memory is in small pieces. All memory
 * is filled: it runs in a small machine only. It gives nothing back before it ends.
 */
#include "../small_machine.h"
#include "../stalls.h"

#define PIECE_BYTES (2UL << 20)
#define MOST_PIECES 200 /* leaves most of what the tenant gave back */
#define LEFT_BYTES (24UL << 20)
#define PERIOD_NS (10 * MILLISECOND)
#define BASELINE_PIECES 3
#ifdef FIXED
#define ADVICE MADV_NOHUGEPAGE
#else
#define ADVICE MADV_HUGEPAGE
#endif

static uint64_t usual_ns;

/* Fills the memory, and gives every second page back. */
static void tenant(void *ready)
{
	uint64_t available = meminfo_bytes("MemFree");
	size_t bytes = available > LEFT_BYTES ? available - LEFT_BYTES : 0;
	char *memory = map_small_pages(bytes);

	touch_pages(memory, bytes);
	for (size_t at = 0; at + PAGE_BYTES < bytes; at += 2 * PAGE_BYTES)
		madvise(memory + at, PAGE_BYTES, MADV_DONTNEED);
	if (write(*(int *)ready, "x", 1) != 1)
		die("cannot say that memory is in pieces");
	for (;;)
		pause();
}

static char *new_piece(void)
{
	char *memory = mmap(NULL, 2 * PIECE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *piece = (char *)(((uintptr_t)memory + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES);

	if (memory == MAP_FAILED)
		die("cannot map %lu bytes", 2 * PIECE_BYTES);
	madvise(piece, PIECE_BYTES, ADVICE);
	return piece;
}

/* What touching a new piece takes, waiting for a CPU taken out. */
static uint64_t use_piece(void)
{
	char *piece = new_piece();
	uint64_t began = stall_clock();

	touch_pages(piece, PIECE_BYTES);
	return stall_clock() - began;
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS;

	(void)id;
	for (; running() && mine->ops < MOST_PIECES; next += PERIOD_NS) {
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = use_piece();
		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	int ready[2];
	pid_t pid;
	char byte;

	only_in_a_small_machine();
	usual_ns = UINT64_MAX;
	for (int i = 0; i < BASELINE_PIECES; i++) {
		uint64_t took = use_piece();

		if (took < usual_ns)
			usual_ns = took;
	}
	if (pipe2(ready, O_CLOEXEC))
		die("cannot make a pipe");
	pid = start_process("tenant", tenant, &ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the tenant does not fill memory");
	sum = run_workers(1, "worker", serve, seconds);
	end_process(pid);

	printf("%llu pieces, %.2f ms each while memory was whole, %.2f ms more on average; at worst %.1f ms\n",
	       (unsigned long long)sum.ops, (double)usual_ns / 1e6,
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6);
	print_truth(&sum, "%s", "");
	return 0;
}
