/*
 * An event loop hands the requests of ten clients to a pool of three threads, which sleep for 12 ms
 * with each: seven wait in a line of the program's own.
 */
#include "loop_and_threads.h"

static void work(int id)
{
	for (int fd = take(); fd >= 0; fd = take()) {
		struct wait wait = wait_begins();

		sleep_ms(12);
		wait_ends(wait, 0);
		give_back(fd);
	}
}

int main(int argc, char **argv)
{
	run_server(begin_shape(argc, argv), "pool-worker", 3, work);
	return TRUTH({ "worker-pool-full,pool,timer", "pool-worker", "sleep" });
}
