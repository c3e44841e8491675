/*
 * Four workers log under a mutex into a pipe that a slow reader, a process of its own, empties
 * by 4 KiB every 4 ms. One worker waits for room in the pipe, the others for the mutex.
 */
#include "shape.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void collect(void *nothing)
{
	char text[4096];

	close(ends[1]);
	while (read(ends[0], text, sizeof text) > 0)
		sleep_ms(4);
}

static void work(int id)
{
	char line[2048];

	memset(line, 'l', sizeof line);
	while (going()) {
		lock_timed(&log_lock, 0);
		struct wait wait = wait_begins();
		if (write(ends[1], line, sizeof line) < 0)
			die("the log is closed");
		wait_ends(wait, 1);
		pthread_mutex_unlock(&log_lock);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
		die("pipe");
	start_process("collector", collect, NULL);
	start_threads("worker", 4, work);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,blocked-log-pipe,timer", "collector", "sleep" },
		     { "blocked-log-pipe", "collector", "sleep" });
}
