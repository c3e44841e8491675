/*
 * Two threads answer lookups in a 64 MiB index, which the page cache has: 32 records a request, a
 * request every 10 ms. Meanwhile another process makes a backup of the index, ten times a second a
 * part of it and then all over again.
 *
 * Faulty: the backup says of all that it has read that nobody needs it any more
 * (POSIX_FADV_DONTNEED), which puts it out of the page cache for everybody; the next lookups read
 * the disk. Fixed (-DFIXED): the backup leaves the page cache alone.
 *
 * lost_ns: sleep in lookups that read the disk, by the thread's own count of blocks.
 */
#include "../disk_lookups.h"
#include <sys/prctl.h>
#include <sys/wait.h>

#define INDEX_BYTES (64UL << 20)
#define BACKUP_PERIOD_NS (100 * MILLISECOND)
#define PART_BYTES (1UL << 20)

static uint64_t any_record(uint64_t nth, uint64_t random)
{
	(void)nth;
	return random % (INDEX_BYTES / RECORD_BYTES);
}

static void read_part(int file, size_t at)
{
	static char part[PART_BYTES];

	if (pread(file, part, PART_BYTES, (off_t)at) != (ssize_t)PART_BYTES)
		_exit(1);
}

/* A process of its own, which goes with its parent. */
static pid_t start_backup(int file)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_NAME, "backup");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t at = 0;; at = (at + PART_BYTES) % INDEX_BYTES) {
		struct timespec pause = { .tv_nsec = BACKUP_PERIOD_NS };

		read_part(file, at);
#ifndef FIXED
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t backup;

	lookups.file = nameless_file("/var/tmp");
	lookups.record = any_record;
	lookups.of_request = 32;
	fill_file(lookups.file, INDEX_BYTES);
	if (fsync(lookups.file) || posix_fadvise(lookups.file, 0, 0, POSIX_FADV_RANDOM))
		die("cannot write the index through to the disk");
	backup = start_backup(lookups.file);
	if (backup < 0)
		die("cannot start the backup");
	sum = run_workers(THREADS, "lookup", answer_requests, seconds);
	kill(backup, SIGKILL);
	waitpid(backup, NULL, 0);

	print_lookups(&sum);
	print_truth(&sum, " from_disk=%llu backup_pid=%d", (unsigned long long)lookups.from_disk, backup);
	return 0;
}
