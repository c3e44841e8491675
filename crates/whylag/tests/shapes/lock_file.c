/*
 * Three processes take turns by a lock file: who cannot make it (O_EXCL), because it is there, looks
 * whose it is, sleeps for 2 ms and tries again; who has made it keeps it for 15 ms of sleep. The
 * sleeps between two tries are a wait for the lock.
 */
#include "shape.h"
#include <sys/stat.h>

static char path[64];

static int take(void)
{
	struct stat whose;
	int file;

	while ((file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)) < 0) {
		if (errno != EEXIST)
			die("cannot make a lock file");
		stat(path, &whose);
		sleep_ms(2);
	}
	return file;
}

static void import(int id)
{
	while (going()) {
		struct wait wait = wait_begins();
		int file = take();

		wait_ends(wait, 0);
		sleep_ms(15);
		unlink(path);
		close(file);
		sleep_ms(3);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	snprintf(path, sizeof path, "/tmp/whylag-shape-%d.lock", getpid());
	start_processes("importer", 3, import);
	run_for(seconds);
	join_crew();
	unlink(path);
	return TRUTH({ "file-lock,turn,timer", "importer-", "sleep" });
}
