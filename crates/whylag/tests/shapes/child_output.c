/*
 * A web application starts a program for each of its pages, and reads what that writes, as a shell
 * does with $(...): the program sleeps for 15 ms before it writes.
 */
#include "shape.h"

static int output[2];

static void render(void *nothing)
{
	sleep_ms(15);
	if (write(output[1], "page\n", 5) != 5)
		die("nobody reads");
}

static void answer_requests(int id)
{
	while (going()) {
		char text[64];

		if (pipe2(output, O_CLOEXEC))
			die("pipe");
		pid_t child = start_process("render-page", render, NULL);

		close(output[1]);
		struct wait wait = wait_begins();

		while (read(output[0], text, sizeof text) > 0)
			;
		wait_ends(wait, 0);
		close(output[0]);
		waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_processes("application", 1, answer_requests);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,timer", "render-page", "sleep" });
}
