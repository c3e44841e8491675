/*
 * Four threads ask a server behind AF_UNIX, which computes for 3 ms for each request, one after the
 * other.
 */
#include "shape.h"

static int door;

static void answer(void)
{
	compute_ms(3);
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
		sleep_ms(2 + id % 2);
	}
	close(server);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_UNIX);
	start_process("resizer", serve_all, NULL);
	start_threads("page", 4, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,cpu", "resizer", "cpu" });
}
