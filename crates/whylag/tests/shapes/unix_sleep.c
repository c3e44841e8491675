/*
 * Three threads ask a server behind AF_UNIX, which sleeps for 5 ms in each request.
 */
#include "shape.h"

static int door;

static void answer(void)
{
	sleep_ms(5);
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
		sleep_ms(2);
	}
	close(server);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_UNIX);
	start_process("quota-server", serve_all, NULL);
	start_threads("upload", 3, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,timer", "quota-server", "sleep" });
}
