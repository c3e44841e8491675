/*
 * Healthy: two workers write a line about each turn to a pipe that does not block, and drop what finds it
 * full. The logger takes a line in 10 ms, far too slow; nobody waits for it. Turns begin by the clock.
 */
#include "shape.h"
#include <sys/uio.h>

static int ends[2];

static void log_lines(void *nothing)
{
	char text[64];

	close(ends[1]);
	while (read(ends[0], text, sizeof text) > 0)
		sleep_ms(10);
}

/* One of the two in the way of libraries that put a head and a line together. */
static ssize_t write_line(int id, char *line, size_t length)
{
	struct iovec parts[] = { { line, length - 1 }, { "\n", 1 } };

	return id ? writev(ends[1], parts, 2) : write(ends[1], line, length);
}

static void work(int id)
{
	uint64_t turn = 0;

	while (going()) {
		char line[64];
		int length;

		compute_ms(0.3);
		length = snprintf(line, sizeof line, "worker %d has done turn %08llu of many, all well\n", id,
				  (unsigned long long)turn++);
		if (write_line(id, line, (size_t)length) < 0 && errno != EAGAIN)
			die("the logger is gone");
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
		die("pipe");
	start_process("logger", log_lines, NULL);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	start_threads("worker", 2, work);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
