/*
 * family CHILDREN MORE: so many children with two children each, all asleep. Then MORE children,
 * one every 5 ms, and the parent never leaves its CPU in between. All end with their parent.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"

/* A child that sleeps for ever, after it has made `children` of its own. */
static void make_child(int children)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (children-- > 0)
		make_child(0);
	while (pause())
		;
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 1, more = argc > 2 ? atoi(argv[2]) : 0;
	uint64_t next;

	while (children-- > 0)
		make_child(2);
	for (next = now_ns(); more-- > 0; next += 5000000) {
		while (now_ns() < next)
			;
		make_child(0);
	}
	while (pause())
		;
}
