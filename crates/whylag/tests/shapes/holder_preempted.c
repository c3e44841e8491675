/*
 * A writer computes for 8 ms with the lock held, on CPU 0, where two hogs of the same process are
 * pinned, too, so that it has a third of the CPU; three readers on the other CPU wait for the lock,
 * most of the time for the hogs' turns.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Time in which a thread was ready and without a CPU. */
static void count_queued(uint64_t before)
{
	shared->lost_ns[1] += queued_ns() - before;
}

static void hog(int id)
{
	uint64_t before = queued_ns();

	pin_to_cpu(0);
	while (going())
		compute_ms(1);
	count_queued(before);
}

static void write_back(int id)
{
	uint64_t before = queued_ns();

	pin_to_cpu(0);
	while (going()) {
		pthread_mutex_lock(&lock);
		compute_ms(8);
		pthread_mutex_unlock(&lock);
		sleep_ms(2);
	}
	count_queued(before);
}

static void read_through(int id)
{
	pin_to_cpu(1);
	while (going()) {
		lock_timed(&lock, 0);
		pthread_mutex_unlock(&lock);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("hog", 2, hog);
	start_threads("writer", 1, write_back);
	start_threads("reader", 3, read_through);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,cpu-runqueue,priority-inversion", "hog-", "cpu" },
		     { "cpu-runqueue", "hog-", "cpu" });
}
