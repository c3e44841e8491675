/* Healthy: a block of input comes every 4 ms and goes through three stages, 0.2 ms each. */
#include "shape.h"

#define STAGES 3

static int pipes[STAGES][2];

static void take_input(int id)
{
	char block[512];

	memset(block, 'i', sizeof block);
	for (uint64_t next = now_ns(); going(); next += 4 * MILLISECOND) {
		sleep_until(next);
		if (write(pipes[0][1], block, sizeof block) < 0)
			die("the first stage is gone");
	}
	close(pipes[0][1]);
}

static void stage(int id)
{
	char block[512];

	while (read(pipes[id][0], block, sizeof block) > 0) {
		compute_ms(0.2);
		if (id + 1 < STAGES && write(pipes[id + 1][1], block, sizeof block) < 0)
			die("the next stage is gone");
	}
	if (id + 1 < STAGES)
		close(pipes[id + 1][1]);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < STAGES; i++)
		if (pipe(pipes[i]))
			die("pipe");
	start_threads("stage", STAGES, stage);
	start_threads("input", 1, take_input);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
