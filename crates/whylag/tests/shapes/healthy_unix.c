/* Healthy: four clients ask a server behind AF_UNIX every 15 ms; an answer takes 0.1 ms. */
#include "shape.h"

static int door;

static void answer(void)
{
	compute_ms(0.1);
}

static void serve_all(void *nothing)
{
	serve(door, answer);
}

static void request(int id)
{
	int server = enter(door);
	uint64_t next = now_ns() + (uint64_t)id * 4 * MILLISECOND;

	for (; going(); next += 15 * MILLISECOND) {
		sleep_until(next);
		ask(server);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_UNIX);
	start_process("quick-server", serve_all, NULL);
	start_threads("client", 4, request);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
