/* Each scan maps the segment and unmaps it: both take the one mmap_lock of the process. */
#include "mmap-lock.h"

static uint64_t scan_mapped(struct reader *reader)
{
	uint64_t began = now_ns(), mapped, counted, rows;
	uint8_t *column = mmap(NULL, SEGMENT_BYTES, PROT_READ, MAP_PRIVATE | MAP_POPULATE,
			       reader->fd, 0);

	if (column == MAP_FAILED)
		die("cannot map the segment");
	mapped = now_ns();
	rows = count_rows(column, SEGMENT_BYTES);
	counted = now_ns();
	munmap(column, SEGMENT_BYTES);
	count_access(reader, mapped - began + now_ns() - counted);
	return rows;
}

int main(int argc, char **argv)
{
	return run_column_store(argc, argv, scan_mapped);
}
