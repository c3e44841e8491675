/*
 * Is stopped by a child and continued 200 ms later. Prints stopped=time from before the stop to
 * after the continuation, as the child sees it.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

int main(void)
{
	pid_t child = fork();

	if (child == 0) {
		uint64_t began;

		sleep_ms(50);
		began = now_ns();
		kill(getppid(), SIGSTOP);
		sleep_ms(200);
		kill(getppid(), SIGCONT);
		printf("stopped=%lu\n", now_ns() - began);
		return 0;
	}
	while (waitpid(child, NULL, 0) < 0)
		;
	return 0;
}
