/*
 * Two clients ask a helper process each by pipes, every 5 ms. An operator stops the helpers for 60 of
 * every 120 ms: they waited for the next request then, which comes meanwhile. From then on the helper
 * loses that time, and the client, which waits for it.
 */
#include "shape.h"

#define HELPERS 2

static int requests[HELPERS][2], answers[HELPERS][2];
static _Atomic uint64_t *asked;

static void answer(int id)
{
	for (;;) {
		struct wait wait = wait_begins();
		uint64_t late;
		char byte;

		if (read(requests[id][0], &byte, 1) != 1)
			break;
		late = now_ns() - asked[id] - (queued_ns() - wait.queued);
		if (late > MILLISECOND && late < SECOND)
			shared->lost_ns[0] += late;
		if (write(answers[id][1], &byte, 1) != 1)
			break;
	}
}

static void request(int id)
{
	char byte = '?';

	while (going()) {
		struct wait wait = wait_begins();

		asked[id] = now_ns();
		if (write(requests[id][1], &byte, 1) != 1 || read(answers[id][0], &byte, 1) != 1)
			die("the helper is gone");
		wait_ends(wait, 0);
		sleep_ms(5);
	}
}

static void signal_helpers(int signal)
{
	for (int i = 0; i < HELPERS; i++)
		kill(crew[i].process, signal);
}

static void stop_helpers(int id)
{
	while (going()) {
		sleep_ms(60);
		signal_helpers(SIGSTOP);
		sleep_ms(60);
		signal_helpers(SIGCONT);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	asked = shared_memory(HELPERS * sizeof *asked);
	for (int i = 0; i < HELPERS; i++)
		if (pipe(requests[i]) || pipe(answers[i]))
			die("pipe");
	start_processes("helper", HELPERS, answer);
	until_workers_wait();
	start_threads("client", HELPERS, request);
	start_threads("operator", 1, stop_helpers);
	run_for(seconds);
	for (int i = HELPERS; i < crew_size; i++)
		pthread_join(crew[i].thread, NULL);
	signal_helpers(SIGKILL);
	for (int i = 0; i < HELPERS; i++)
		waitpid(crew[i].process, NULL, 0);
	return TRUTH({ "stopped-or-traced", "helper-", "stop" });
}
