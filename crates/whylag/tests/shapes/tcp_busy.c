/*
 * Three threads ask a server on loopback, which computes for 4 ms for each request, one after the
 * other.
 */
#include "shape.h"

static int door;

static void answer(void)
{
	compute_ms(4);
}

static void serve_all(void *nothing)
{
	serve(door, answer);
}

static void request(int id)
{
	int server = enter(door);

	while (going()) {
		ask_timed(server, 0);
		sleep_ms(3);
	}
	close(server);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_process("scorer", serve_all, NULL);
	start_threads("auction", 3, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,cpu", "scorer", "cpu" });
}
