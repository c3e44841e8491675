/* A thread asks another by a signal (pthread_kill, sigwait) and waits for one back; the other
 * writes through to the disk. */
#include "shape.h"

static pthread_t asking, asked;
static int file;
static sigset_t request, answer;

static void take(const sigset_t *which)
{
	int number;

	if (sigwait(which, &number))
		die("sigwait");
}

static void flush(int id)
{
	asked = pthread_self();
	for (;;) {
		take(&request);
		/* The appender may wait already. */
		if (!going()) {
			pthread_kill(asking, SIGUSR2);
			break;
		}
		struct wait wait = wait_begins();
		write_disk_ms(file, 5);
		wait_ends(wait, 1);
		pthread_kill(asking, SIGUSR2);
	}
}

static void append(int id)
{
	asking = pthread_self();
	sleep_ms(5);
	while (going()) {
		struct wait wait = wait_begins();

		pthread_kill(asked, SIGUSR1);
		take(&answer);
		wait_ends(wait, 0);
		sleep_ms(3);
	}
	pthread_kill(asked, SIGUSR1);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	sigemptyset(&request);
	sigaddset(&request, SIGUSR1);
	sigemptyset(&answer);
	sigaddset(&answer, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &request, NULL);
	pthread_sigmask(SIG_BLOCK, &answer, NULL);
	start_threads("flusher", 1, flush);
	sleep_ms(5);
	start_threads("appender", 1, append);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,disk,fsync-journal", "flusher-", "disk" },
		     { "disk,fsync-journal", "flusher-", "disk" });
}
