/* Four processes share a file under an fcntl lock; whoever has it reads it from the disk. */
#include "shape.h"

#define BLOCK (1UL << 20)

static int file;

static void lock_file(short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	if (fcntl(file, F_SETLKW, &lock))
		die("fcntl");
}

/* Its blocks are dropped from memory first. */
static void read_from_disk(char *block)
{
	if (posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		die("fadvise");
	for (off_t at = 0; at < (off_t)BLOCK; at += 32768)
		if (pread(file, block, 4096, at) != 4096)
			die("cannot read from the disk");
}

static void scan(int id)
{
	static char block[4096];

	while (going()) {
		struct wait wait = wait_begins();

		lock_file(F_WRLCK);
		wait_ends(wait, 0);
		wait = wait_begins();
		read_from_disk(block);
		wait_ends(wait, 1);
		lock_file(F_UNLCK);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	fill_file(file, BLOCK);
	if (fsync(file))
		die("fsync");
	start_processes("scanner", 4, scan);
	run_for(seconds);
	join_crew();
	return TRUTH({ "file-lock,turn", "scanner-", "disk" }, { "disk", "scanner-", "disk" });
}
