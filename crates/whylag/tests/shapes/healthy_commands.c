/*
 * Healthy: a build tool starts a compiler, which computes for 20 ms, and waits for it; again and again.
 * What its commands compute is its own work.
 */
#include "shape.h"

static void compile(void *nothing)
{
	compute_ms(20);
}

static void build(int id)
{
	while (going())
		waitpid(start_process("compiler", compile, NULL), NULL, 0);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("builder", 1, build);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
