/*
 * A hundred threads hold a session each and wait for messages that do not come (idle). Two callers
 * wait for the one renderer, which computes for 6 ms a job and never rests.
 */
#include "shape.h"

#define CALLERS 2

static int jobs[2], done[CALLERS][2], quiet[2];

static void hold_session(int id)
{
	char byte;

	while (read(quiet[0], &byte, 1) > 0)
		;
}

static void render(int id)
{
	char caller;

	while (read(jobs[0], &caller, 1) == 1) {
		compute_ms(6);
		if (write(done[(int)caller][1], &caller, 1) != 1)
			die("the caller is gone");
	}
}

static void call(int id)
{
	char byte = (char)id;

	while (going()) {
		struct wait wait = wait_begins();

		if (write(jobs[1], &byte, 1) != 1 || read(done[id][0], &byte, 1) != 1)
			die("the renderer is gone");
		wait_ends(wait, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(jobs) || pipe(quiet) || pipe(done[0]) || pipe(done[1]))
		die("pipe");
	start_threads("session", 100, hold_session);
	start_threads("renderer", 1, render);
	until_workers_wait();
	start_threads("caller", CALLERS, call);
	run_for(seconds);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(crew[101 + i].thread, NULL);
	close(jobs[1]);
	close(quiet[1]);
	pthread_join(crew[100].thread, NULL);
	return TRUTH({ "turn,peer,cpu", "renderer-", "cpu" });
}
