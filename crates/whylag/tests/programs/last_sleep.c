/*
 * Sleeps for 50 ms, ends its recording as Ctrl-C does, and computes until that has ended: after the
 * sleep it takes no further step that a recording with --cheap sees, unless it is preempted.
 */
#include <signal.h>
#include <unistd.h>

#include "clock.h"

int main(void)
{
	pid_t recorder = getppid();

	sleep_ms(50);
	kill(recorder, SIGINT);
	spin_cpu_ns(200000000);
	return 0;
}
