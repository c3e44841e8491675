/*
 * One thread asks a server on loopback, which sleeps for 12 ms in each request.
 */
#include "shape.h"

static int door;

static void answer(void)
{
	sleep_ms(12);
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
	start_process("geocoder", serve_all, NULL);
	start_threads("order", 1, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,timer", "geocoder", "sleep" });
}
