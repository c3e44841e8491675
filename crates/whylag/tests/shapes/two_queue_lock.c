/*
 * Two causes: three threads compute on one CPU, so each waits for the two others, and five sessions
 * on the other CPU share a mutex that is held for 4 ms of sleep.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void crunch(int id)
{
	uint64_t before = queued_ns();

	pin_to_cpu(0);
	while (going())
		compute_ms(1);
	shared->lost_ns[1] += queued_ns() - before;
}

static void hold(int id)
{
	pin_to_cpu(1);
	while (going()) {
		lock_timed(&lock, 0);
		sleep_ms(4);
		pthread_mutex_unlock(&lock);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("cruncher", 3, crunch);
	start_threads("session", 5, hold);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "session-", "sleep" }, { "cpu-runqueue", "cruncher-", "cpu" });
}
