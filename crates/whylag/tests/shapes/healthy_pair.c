/*
 * Healthy: three worker processes wait for requests at pairs of sockets, each from a thread of its own
 * that asks every 15 ms; an answer takes 0.1 ms.
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
		compute_ms(0.1);
		if (write(requests, &byte, 1) != 1)
			die("nobody waits for the answer");
	}
}

static void request(int id)
{
	int worker = pairs[id][0];
	uint64_t next = now_ns() + (uint64_t)id * 5 * MILLISECOND;
	const char stop = STOP;

	for (; going(); next += 15 * MILLISECOND) {
		sleep_until(next);
		ask(worker);
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
	start_processes("quick-worker", WORKERS, work);
	start_threads("client", WORKERS, request);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
