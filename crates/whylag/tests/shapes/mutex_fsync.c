/* Five committers share a journal: each writes through to the disk with the mutex held. */
#include "shape.h"

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static int file;

static void commit(int id)
{
	while (going()) {
		lock_timed(&journal, 0);
		struct wait wait = wait_begins();
		write_disk_ms(file, 4);
		wait_ends(wait, 1);
		pthread_mutex_unlock(&journal);
		sleep_ms(1 + id % 2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	start_threads("committer", 5, commit);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,disk,fsync-journal", "committer-", "disk" }, { "disk,fsync-journal", "committer-", "disk" });
}
