/*
 * Two causes that have nothing to do with each other: two writers write through to the disk,
 * and four sessions share a mutex that is held for 5 ms of sleep.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file;

static void write_through(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		write_disk_ms(file, 6);
		wait_ends(wait, 1);
		sleep_ms(2);
	}
}

static void hold(int id)
{
	while (going()) {
		lock_timed(&lock, 0);
		sleep_ms(5);
		pthread_mutex_unlock(&lock);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	start_threads("writer", 2, write_through);
	start_threads("session", 4, hold);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "session-", "sleep" }, { "disk,fsync-journal", "writer-", "disk" });
}
