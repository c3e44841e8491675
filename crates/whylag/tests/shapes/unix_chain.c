/*
 * Three threads ask a local server, which asks another local server, which sleeps for 8 ms a
 * request: the end is two waits away.
 */
#include "shape.h"

static int door, deep_door, deep;

static void answer_slowly(void)
{
	sleep_ms(8);
}

static void serve_slowly(void *nothing)
{
	serve(deep_door, answer_slowly);
}

static void pass_on(void)
{
	ask_timed(deep, 1);
}

static void serve_by_asking(void *nothing)
{
	deep = enter(deep_door);
	serve(door, pass_on);
}

static void request(int id)
{
	int server = enter(door);

	while (going()) {
		ask_timed(server, 0);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	deep_door = open_door(AF_UNIX);
	door = open_door(AF_UNIX);
	start_process("tag-store", serve_slowly, NULL);
	start_process("api", serve_by_asking, NULL);
	start_threads("browser", 3, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,timer", "tag-store", "sleep" }, { "peer,timer", "tag-store", "sleep" });
}
