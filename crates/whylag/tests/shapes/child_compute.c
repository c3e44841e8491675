/* A supervisor starts a converter, which computes for 20 ms, and waits for it; again and again. */
#include "shape.h"

static void convert(void *nothing)
{
	compute_ms(20);
}

static void supervise(int id)
{
	while (going()) {
		pid_t child = start_process("converter", convert, NULL);
		struct wait wait = wait_begins();

		waitpid(child, NULL, 0);
		wait_ends(wait, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("supervisor", 1, supervise);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,cpu", "converter", "cpu" });
}
