/*
 * Three threads each ask a child process of their own over two pipes, as popen2 makes them: it sleeps for
 * 4 ms for each request. The children wait 4 ms for each next request, which nobody loses.
 */
#include "shape.h"

#define WORKERS 3
#define STOP 'q'

static int requests[WORKERS][2], answers[WORKERS][2];

static void work(int id)
{
	char byte;

	while (read(requests[id][0], &byte, 1) == 1 && byte != STOP) {
		sleep_ms(4);
		if (write(answers[id][1], &byte, 1) != 1)
			die("nobody waits for the answer");
	}
}

static void request(int id)
{
	const char stop = STOP;
	char byte = '?';

	while (going()) {
		struct wait wait = wait_begins();

		if (write(requests[id][1], &byte, 1) != 1 || read(answers[id][0], &byte, 1) != 1)
			die("the child is gone");
		wait_ends(wait, 0);
		sleep_ms(4);
	}
	if (write(requests[id][1], &stop, 1) != 1)
		die("the child is gone");
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < WORKERS; i++)
		if (pipe2(requests[i], O_CLOEXEC) || pipe2(answers[i], O_CLOEXEC))
			die("pipe");
	start_processes("filter", WORKERS, work);
	start_threads("page", WORKERS, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "timer,peer", "filter-", "sleep" });
}
