/*
 * A lock as musl makes it: the word is negative while locked and counts who wants it. The holder
 * writes through to the disk.
 */
#include "shape.h"
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

static _Atomic int word;
static int file;

static void acquire(void)
{
	int seen = 0;

	if (atomic_compare_exchange_strong(&word, &seen, INT_MIN + 1))
		return;
	seen = atomic_fetch_add(&word, 1) + 1;
	for (;;) {
		if (seen < 0) {
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
			seen = atomic_load(&word);
			continue;
		}
		if (atomic_compare_exchange_strong(&word, &seen, INT_MIN + seen))
			return;
	}
}

static void release(void)
{
	if (atomic_fetch_add(&word, -(INT_MIN + 1)) != INT_MIN + 1)
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void store(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		acquire();
		wait_ends(wait, 0);
		wait = wait_begins();
		write_disk_ms(file, 4);
		wait_ends(wait, 1);
		release();
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	file = disk_file();
	start_threads("store", 5, store);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,disk,fsync-journal", "store-", "disk" }, { "disk,fsync-journal", "store-", "disk" });
}
