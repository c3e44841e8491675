/* Two processes with the same id, one after the other: `first-life`, which sleeps for 100 ms, and
 * `second-life`, which does so, too. Prints the id. Needs CAP_SYS_ADMIN to choose it. */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t born(const pid_t *wanted, const char *name)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)wanted,
		.set_tid_size = wanted ? 1 : 0,
	};
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0) {
		perror("clone3");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_NAME, name);
		usleep(100000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

int main(void)
{
	pid_t pid = born(NULL, "first-life");

	born(&pid, "second-life");
	printf("%d\n", pid);
	return 0;
}
