/* Four processes share a spool under flock; whoever has it sleeps for 6 ms. */
#include "shape.h"
#include <sys/file.h>

static char path[64];

static void deliver(int id)
{
	int spool = open(path, O_RDWR | O_CLOEXEC);

	while (going()) {
		struct wait wait = wait_begins();

		if (flock(spool, LOCK_EX))
			die("flock");
		wait_ends(wait, 0);
		sleep_ms(6);
		flock(spool, LOCK_UN);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	int spool = disk_file();

	snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), spool);
	start_processes("mailer", 4, deliver);
	run_for(seconds);
	join_crew();
	return TRUTH({ "file-lock,turn,timer", "mailer-", "sleep" });
}
