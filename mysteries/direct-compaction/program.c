/*
 * A program keeps half of each 8 KiB of memory, as heaps do that are old: what is free is in single
 * pages. A thread asks for a piece of 2 MiB, uses it, gives half of its pages back and others of the
 * heap, again and again.
 *
 * Faulty: it asks for huge pages (MADV_HUGEPAGE), and for each one the kernel first has to move pages of
 * others together. Fixed (-DFIXED): it takes small pages.
 *
 * What touching a piece costs is measured in the same run, before memory is in small pieces. All memory
 * is filled: it runs in a small machine only.
 */
#include "../small_machine.h"
#include "../stalls.h"

#define PIECE_BYTES (2UL << 20)
#define PIECE_PAGES (PIECE_BYTES / PAGE_BYTES)
#define LEFT_BYTES (128UL << 20)
#define PERIOD_NS (20 * MILLISECOND)
#define BASELINE_PIECES 5
#ifdef FIXED
#define ADVICE MADV_NOHUGEPAGE
#else
#define ADVICE MADV_HUGEPAGE
#endif

static char **heap; /* the pages that are kept */
static size_t kept;
static uint64_t usual_ns;

static uint64_t next_random(void)
{
	static uint64_t random = 88172645463325252ULL;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random;
}

static void give_back(char *page)
{
	madvise(page, PAGE_BYTES, MADV_DONTNEED);
}

/* Fills the memory, and gives every second page back. */
static void make_heap(void)
{
	uint64_t available = meminfo_bytes("MemFree");
	size_t bytes = available > LEFT_BYTES ? available - LEFT_BYTES : 0;
	char *memory = map_small_pages(bytes);

	touch_pages(memory, bytes);
	heap = (char **)map_small_pages(bytes / PAGE_BYTES * sizeof *heap);
	for (size_t at = 0; at + PAGE_BYTES < bytes; at += 2 * PAGE_BYTES) {
		heap[kept++] = memory + at;
		give_back(memory + at + PAGE_BYTES);
	}
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
static uint64_t use_piece(char *piece)
{
	uint64_t began = stall_clock();

	touch_pages(piece, PIECE_BYTES);
	return stall_clock() - began;
}

/* Half of the piece goes into the heap, in place of pages that go. */
static void scatter(char *piece)
{
	for (size_t i = 0; i < PIECE_PAGES; i += 2) {
		size_t place = next_random() % kept;

		give_back(heap[place]);
		heap[place] = piece + i * PAGE_BYTES;
		give_back(piece + (i + 1) * PAGE_BYTES);
	}
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS;

	(void)id;
	for (; running(); next += PERIOD_NS) {
		char *piece = new_piece();
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = use_piece(piece);
		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		scatter(piece);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	only_in_a_small_machine();
	usual_ns = UINT64_MAX;
	for (int i = 0; i < BASELINE_PIECES; i++) {
		uint64_t took = use_piece(new_piece());

		if (took < usual_ns)
			usual_ns = took;
	}
	make_heap();
	sum = run_workers(1, "worker", serve, seconds);

	printf("%llu pieces, %.2f ms each while memory was whole, %.2f ms more on average; at worst %.1f ms\n",
	       (unsigned long long)sum.ops, (double)usual_ns / 1e6,
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6);
	print_truth(&sum, "%s", "");
	return 0;
}
