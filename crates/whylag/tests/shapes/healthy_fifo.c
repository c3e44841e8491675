/*
 * A daemon reads what short jobs write into its pipe, one job every 20 ms, each a process of its own
 * that another one starts. The daemon waits for work.
 */
#include "shape.h"

static int entrance[2];

static void job(void *nothing)
{
	compute_ms(0.3);
	if (write(entrance[1], "done\n", 5) != 5)
		die("nobody reads");
}

static void start_jobs(int id)
{
	while (going()) {
		pid_t child = start_process("job", job, NULL);

		sleep_ms(20);
		waitpid(child, NULL, 0);
	}
	if (write(entrance[1], "over\n", 5) != 5)
		die("nobody reads");
}

static void note(int id)
{
	char line[64];

	while (read(entrance[0], line, sizeof line) > 0 && going())
		compute_ms(0.1);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(entrance))
		die("pipe");
	start_processes("scheduler", 1, start_jobs);
	start_processes("daemon", 1, note);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
