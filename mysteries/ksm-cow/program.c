/*
 * An emulator holds the memory of its guests, 64 MB that are much alike, and lets them write.
 *
 * Faulty: the memory is offered to the kernel for merging (MADV_MERGEABLE), and once ksmd has made
 * one page of equal ones, the next write to any of them is a fault in which the page is copied.
 * Fixed (-DFIXED): memory that is about to be written is not offered.
 *
 * Needs a kernel that merges (/sys/kernel/mm/ksm/run is 1); says so and ends with 77 if it does
 * not. The guests pause while ksmd works: that time is the pace of ksmd, not a loss.
 */
#include "../pages.h"

#define GUEST_BYTES (64 * MEGABYTE)
#define GUEST_PAGES (GUEST_BYTES / PAGE)
#define STEP_PAGES 16
#define STEP_BYTES (STEP_PAGES * PAGE)
#define STEP_NS (30 * MICROSECOND)
#define CALIBRATION 400
#define SKIPPED 77

static uint8_t *guests;
static uint64_t step_rounds;
static uint64_t ordinary_ns; /* a step in pages that are not merged */

static unsigned long number_in(const char *path)
{
	unsigned long number = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return 0;
	if (fscanf(file, "%lu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* Returns how long the writes took. */
static uint64_t step(uint8_t *memory, uint64_t value)
{
	uint64_t began;

	compute(value, step_rounds);
	began = now_ns();
	write_pages(memory, STEP_BYTES, value);
	return now_ns() - began;
}

#ifndef FIXED
/* Of this process; before 5.19 of all, as the kernel says no more. */
static unsigned long merged_pages(void)
{
	const char *own = "/proc/self/ksm_merging_pages";

	return number_in(access(own, R_OK) ? "/sys/kernel/mm/ksm/pages_sharing" : own);
}
#endif

/* Until nine of ten pages are merged, or the end. */
static void await_merging(void)
{
#ifndef FIXED
	while (running() && merged_pages() < GUEST_PAGES / 10 * 9)
		sleep_until(now_ns() + 5 * MILLISECOND);
#endif
}

static void run_guests(int id, struct account *mine)
{
	(void)id;
	for (uint64_t round = 1; running(); round++) {
		await_merging();
		/* All pages get the same value, so they can be merged again. */
		for (size_t at = 0; running() && at < GUEST_BYTES; at += STEP_BYTES, mine->ops++)
			count_loss(mine, above(step(guests + at, round), ordinary_ns));
	}
}

static uint64_t ordinary_step(void)
{
	static uint64_t took[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = step(guests + (size_t)i * STEP_BYTES, 0);
	return median(took, CALIBRATION);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	if (number_in("/sys/kernel/mm/ksm/run") != 1) {
		fprintf(stderr, "KSM is off on this host (/sys/kernel/mm/ksm/run is not 1): "
				"no pages are merged, and none can be copied\n");
		return SKIPPED;
	}
	only_small_pages();
	step_rounds = rounds_for(STEP_NS);
	guests = fresh_memory(GUEST_BYTES, MAP_POPULATE);
	ordinary_ns = ordinary_step();
#ifndef FIXED
	if (madvise(guests, GUEST_BYTES, MADV_MERGEABLE))
		die("cannot offer memory for merging");
#endif
	sum = run_workers(1, "guest", run_guests, seconds);

	printf("%llu steps; the writes of one take %.1f us on average (in pages that are not merged: %.1f us)\n",
	       (unsigned long long)sum.ops,
	       ((double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) + (double)ordinary_ns) / 1e3,
	       (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
