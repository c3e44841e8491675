/* A byte in a pipe is the lock of four processes, as in make's jobserver; its holder sleeps. */
#include "shape.h"

static int ends[2];

static void build(int id)
{
	char token;

	while (going()) {
		struct wait wait = wait_begins();

		if (read(ends[0], &token, 1) != 1)
			die("the token is lost");
		wait_ends(wait, 0);
		sleep_ms(7);
		if (write(ends[1], &token, 1) != 1)
			die("cannot give the token back");
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(ends) || write(ends[1], "+", 1) != 1)
		die("pipe");
	start_processes("builder", 4, build);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "builder-", "sleep" });
}
