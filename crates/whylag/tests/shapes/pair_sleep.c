/*
 * Three threads each ask a worker process of their own over a pair of sockets, as multiprocessing.Pipe
 * makes them: it sleeps for 4 ms for each request. The workers wait 4 ms for each next request, which
 * nobody loses.
 */
#include "shape.h"

#define WORKERS 3
#define STOP 'q'

static int pairs[WORKERS][2];

static void work(int id)
{
	int requests = pairs[id][1];
	char byte;

	while (read(requests, &byte, 1) == 1 && byte != STOP) {
		sleep_ms(4);
		if (write(requests, &byte, 1) != 1)
			die("nobody waits for the answer");
	}
}

static void request(int id)
{
	int worker = pairs[id][0];
	const char stop = STOP;

	while (going()) {
		ask_timed(worker, 0);
		sleep_ms(4);
	}
	if (write(worker, &stop, 1) != 1)
		die("the worker is gone");
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < WORKERS; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]))
			die("socketpair");
	start_processes("resizer", WORKERS, work);
	start_threads("page", WORKERS, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "timer,peer", "resizer-", "sleep" });
}
