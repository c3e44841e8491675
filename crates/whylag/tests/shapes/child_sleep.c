/* Two jobs start a hook, which sleeps for 25 ms, and wait for SIGCHLD, as a shell's job control. */
#include "shape.h"

static void hook(void *nothing)
{
	sleep_ms(25);
}

static void run_hooks(int id)
{
	sigset_t child_ended;

	sigemptyset(&child_ended);
	sigaddset(&child_ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ended, NULL);
	while (going()) {
		pid_t child = start_process("pre-commit", hook, NULL);
		struct wait wait = wait_begins();

		while (sigwaitinfo(&child_ended, NULL) < 0)
			;
		wait_ends(wait, 0);
		waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_processes("job", 2, run_hooks);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,timer", "pre-commit", "sleep" });
}
