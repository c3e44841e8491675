/*
 * A producer writes to a pipe that does not block; when it is full (EAGAIN) it sleeps for 1 ms and
 * tries again. The consumer, a process, takes 4 KiB every 5 ms.
 */
#include "shape.h"

static int ends[2];

static void drain(void *nothing)
{
	char text[4096];

	close(ends[1]);
	while (read(ends[0], text, sizeof text) > 0)
		sleep_ms(5);
}

static void produce(int id)
{
	char line[4096];

	memset(line, 'p', sizeof line);
	while (going()) {
		struct wait wait = wait_begins();

		while (write(ends[1], line, sizeof line) < 0 && going())
			sleep_ms(1);
		wait_ends(wait, 0);
		compute_ms(0.1);
	}
}

static void nothing_to_do(int id)
{
	while (going())
		sleep_ms(20);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
		die("pipe");
	start_process("shipper", drain, NULL);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	start_threads("producer", 1, produce);
	start_threads("housekeeper", 1, nothing_to_do);
	run_for(seconds);
	join_crew();
	return TRUTH({ "blocked-log-pipe,peer,timer", "shipper", "sleep" });
}
