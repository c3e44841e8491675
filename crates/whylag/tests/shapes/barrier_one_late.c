/*
 * Four threads run the same steps and meet after each, at a barrier made as those of C++ are: a count
 * and a word to sleep on. One of them sleeps for 12 ms in each step, the others for 2 ms: it comes last
 * every time, and never waits there.
 */
#include "shape.h"
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#define PARTIES 4

static double part_ms[PARTIES] = { 12, 2, 2, 2 };
static atomic_int come;
static atomic_uint phase;
/* For each step in turn, so that who comes first to the next one does not change it. */
static bool is_last[2];

static void meet(void)
{
	unsigned now = atomic_load(&phase);

	if (atomic_fetch_add(&come, 1) == PARTIES - 1) {
		atomic_store(&come, 0);
		atomic_store(&phase, now + 1);
		syscall(SYS_futex, &phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
		return;
	}
	while (atomic_load(&phase) == now)
		syscall(SYS_futex, &phase, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void simulate(int id)
{
	for (int step = 0;; step = !step) {
		struct wait wait;

		sleep_ms(part_ms[id]);
		if (id == 0)
			is_last[step] = !going();
		wait = wait_begins();
		meet();
		if (id)
			wait_ends(wait, 0);
		if (is_last[step])
			return;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("cell", PARTIES, simulate);
	run_for(seconds);
	join_crew();
	return TRUTH({ "barrier,peer,timer", "cell-0", "sleep" });
}
