/*
 * A client asks a web application, which starts a converter for each request and waits for it; that
 * computes for 20 ms.
 */
#include "shape.h"

static int door;

static void convert(void *nothing)
{
	compute_ms(20);
}

static void answer(void)
{
	pid_t child = start_process("converter", convert, NULL);
	struct wait wait = wait_begins();

	waitpid(child, NULL, 0);
	wait_ends(wait, 1);
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

	door = open_door(AF_INET);
	start_process("application", serve_all, NULL);
	start_threads("browser", 1, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,cpu", "converter", "cpu" }, { "peer,cpu", "converter", "cpu" });
}
