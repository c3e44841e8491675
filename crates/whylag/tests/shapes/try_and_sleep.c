/*
 * Three processes try a file lock (flock LOCK_NB) and sleep for 2 ms when it is refused; who has it
 * keeps it for 15 ms of sleep. The sleeps between two tries are a wait for the lock.
 */
#include "shape.h"
#include <sys/file.h>

static char path[64];

static void import(int id)
{
	int spool = open(path, O_RDWR | O_CLOEXEC);

	while (going()) {
		struct wait wait = wait_begins();

		while (flock(spool, LOCK_EX | LOCK_NB))
			sleep_ms(2);
		wait_ends(wait, 0);
		sleep_ms(15);
		flock(spool, LOCK_UN);
		sleep_ms(3);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	int spool = disk_file();

	snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), spool);
	start_processes("importer", 3, import);
	run_for(seconds);
	join_crew();
	return TRUTH({ "file-lock,turn,timer", "importer-", "sleep" });
}
