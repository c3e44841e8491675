/*
 * An in-memory table of 256 MiB: a thread updates one page of it after the other at random, each
 * update 3 us of computing and one store. Every 0.4 s the table is saved.
 *
 * Faulty: to save it, the process forks, and the child reads its copy (0.3 s), as Redis does. The
 * copy is made by sharing all pages and copying each one at the first store to it: so after each
 * fork the stores fault, and each fault copies a page. Fixed (-DFIXED): a thread of the process
 * reads the table; nothing is shared, nothing copied.
 *
 * lost_ns: the time of each store above the median of stores before the first fork.
 */
#include "../measure.h"
#include <sys/mman.h>

#define TABLE (256UL << 20)
#define PAGE 4096UL
#define PAGES (TABLE / PAGE)
#define COMPUTE_NS (3 * MICROSECOND)
#define SAVE_EVERY_NS (400 * MILLISECOND)
#define SAVE_NS (300 * MILLISECOND)
#define BASELINE 20000

static char *table;
static uint64_t compute_rounds, ordinary_ns;
static _Atomic uint64_t saves;

/* Reads the table, again and again, for as long as saving it would take. */
static void save(void *unused)
{
	uint64_t end = now_ns() + SAVE_NS, sum = 0;

	(void)unused;
	while (now_ns() < end)
		for (size_t at = 0; at < TABLE; at += PAGE)
			sum += *(volatile uint64_t *)(table + at);
	compute(sum, 1);
}

static uint64_t update(uint64_t *state)
{
	uint64_t began, *place;

	*state = compute(*state, compute_rounds);
	place = (uint64_t *)(table + *state % PAGES * PAGE);
	began = now_ns();
	*(volatile uint64_t *)place = *state;
	return now_ns() - began;
}

static void update_table(int id, struct account *mine)
{
	uint64_t state = 42 + (uint64_t)id;

	for (; running(); mine->ops++)
		count_loss(mine, above(update(&state), ordinary_ns));
}

static void *save_now_and_then(void *unused)
{
	uint64_t next = now_ns();

	(void)unused;
	for (; running(); next += SAVE_EVERY_NS) {
		sleep_until(next);
#ifdef FIXED
		save(NULL);
#else
		waitpid(start_process("saver", save, NULL), NULL, 0);
#endif
		saves++;
	}
	return NULL;
}

static uint64_t measure_ordinary(void)
{
	static uint64_t took[BASELINE];
	uint64_t state = 7;

	for (size_t i = 0; i < BASELINE; i++)
		took[i] = update(&state);
	return median(took, BASELINE);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pthread_t saver;

	table = mmap(NULL, TABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		die("cannot map %lu MiB", TABLE >> 20);
	madvise(table, TABLE, MADV_NOHUGEPAGE);
	memset(table, 1, TABLE);
	compute_rounds = rounds_for(COMPUTE_NS);
	ordinary_ns = measure_ordinary();
	errno = pthread_create(&saver, NULL, save_now_and_then, NULL);
	if (errno)
		die("cannot start a thread");
	sum = run_workers(1, "update", update_table, seconds);
	pthread_join(saver, NULL);

	printf("%llu updates, %llu saves; stores took %.0f %% of the thread's time beyond their ordinary %llu ns\n",
	       (unsigned long long)sum.ops, (unsigned long long)saves,
	       share(sum.lost_ns, sum.wall_ns), (unsigned long long)ordinary_ns);
	print_truth(&sum, " saves=%llu", (unsigned long long)saves);
	return 0;
}
