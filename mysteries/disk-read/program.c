/*
 * Two threads answer lookups in a 256 MiB index that was never in the page cache: 64 records a
 * request, a request every 10 ms. For 5 s no record comes twice.
 *
 * Faulty: each record is read from the file when it is asked for. Fixed (-DFIXED): the index is
 * in the program's own memory from the start.
 *
 * lost_ns: sleep in lookups that read the disk, by the thread's own count of blocks.
 */
#include "../disk_lookups.h"
#include "../pages.h"

#define INDEX_BYTES (256UL << 20)
#define CHUNK_BYTES (8UL << 20)
#define INDEX_RECORDS (INDEX_BYTES / RECORD_BYTES)
#define STRIDE 40503UL /* odd, so that each record comes once before any comes again */

static uint64_t next_record(uint64_t nth, uint64_t random)
{
	(void)random;
	return nth * STRIDE % INDEX_RECORDS;
}

/* Around the page cache, so that nothing of it stays there. */
static void make_index(void)
{
	uint8_t *index = fresh_memory(INDEX_BYTES, MAP_POPULATE);
	uint64_t random = 88172645463325252ULL;

	lookups.file = nameless_file("/var/tmp");
	if (fcntl(lookups.file, F_SETFL, O_DIRECT))
		die("the file system of the index has no direct I/O (set TMPDIR)");
	for (size_t i = 0; i < INDEX_BYTES; i += sizeof random) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(index + i, &random, sizeof random);
	}
	for (size_t at = 0; at < INDEX_BYTES; at += CHUNK_BYTES)
		if (pwrite(lookups.file, index + at, CHUNK_BYTES, (off_t)at) != (ssize_t)CHUNK_BYTES)
			die("cannot write the index");
	if (fcntl(lookups.file, F_SETFL, 0) || posix_fadvise(lookups.file, 0, 0, POSIX_FADV_RANDOM))
		die("cannot use the index through the page cache");
#ifdef FIXED
	lookups.copy = (const char *)index;
#else
	munmap(index, INDEX_BYTES);
#endif
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	lookups.record = next_record;
	lookups.of_request = 64;
	make_index();
	sum = run_workers(THREADS, "lookup", answer_requests, seconds);
	close(lookups.file);

	print_lookups(&sum);
	print_truth(&sum, " from_disk=%llu", (unsigned long long)lookups.from_disk);
	return 0;
}
