/*
 * A service writes lines of 4 KiB to a local socket, as to journald; its reader, a process, takes one
 * every 5 ms, and sleeps in between.
 */
#include "shape.h"

static int ends[2];

static void take_lines(void *nothing)
{
	char line[4096];

	close(ends[1]);
	while (recv(ends[0], line, sizeof line, 0) > 0)
		sleep_ms(5);
}

static void log_lines(int id)
{
	char line[4096];

	memset(line, 'l', sizeof line);
	while (going()) {
		struct wait wait = wait_begins();

		if (send(ends[1], line, sizeof line, 0) != sizeof line)
			die("the reader is gone");
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
	int room = 16384;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ||
	    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room))
		die("socketpair");
	start_process("journal", take_lines, NULL);
	close(ends[0]);
	start_threads("service", 1, log_lines);
	start_threads("housekeeper", 1, nothing_to_do);
	run_for(seconds);
	join_crew();
	return TRUTH({ "blocked-log-pipe,peer,timer", "journal", "sleep" });
}
