/* Four processes share a file under an fcntl lock; whoever has it reads it from the disk. */
#include "shape.h"

static int file;

static void lock_file(short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	if (fcntl(file, F_SETLKW, &lock))
		die("fcntl");
}

static void scan(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		lock_file(F_WRLCK);
		wait_ends(wait, 0);
		wait = wait_begins();
		read_disk_ms(file, 4);
		wait_ends(wait, 1);
		lock_file(F_UNLCK);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	start_processes("scanner", 4, scan);
	run_for(seconds);
	join_crew();
	return TRUTH({ "file-lock,turn,disk", "scanner-", "disk" }, { "disk", "scanner-", "disk" });
}
