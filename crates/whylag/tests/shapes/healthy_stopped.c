/*
 * Healthy: a helper process is stopped for 50 of every 100 ms, and its only client, which stops it
 * itself, asks it while it may run.
 */
#include "shape.h"

static int requests[2], answers[2];

static void answer(int id)
{
	char byte;

	while (read(requests[0], &byte, 1) == 1 && write(answers[1], &byte, 1) == 1)
		;
}

static void ask_between_stops(int id)
{
	char byte = '?';

	while (going()) {
		for (int i = 0; i < 5; i++) {
			if (write(requests[1], &byte, 1) != 1 || read(answers[0], &byte, 1) != 1)
				die("the helper is gone");
			sleep_ms(10);
		}
		kill(crew[0].process, SIGSTOP);
		sleep_ms(50);
		kill(crew[0].process, SIGCONT);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(requests) || pipe(answers))
		die("pipe");
	start_processes("helper", 1, answer);
	start_threads("client", 1, ask_between_stops);
	run_for(seconds);
	pthread_join(crew[1].thread, NULL);
	kill(crew[0].process, SIGKILL);
	waitpid(crew[0].process, NULL, 0);
	return HEALTHY;
}
