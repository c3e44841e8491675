/* Each scan reads the segment into the thread's own buffer: no lock of the address space. */
#include "mmap-lock.h"

static uint64_t scan_read(struct reader *reader)
{
	uint64_t began = now_ns();

	for (size_t done = 0; done < SEGMENT_BYTES;) {
		ssize_t got = pread(reader->fd, reader->buffer + done, SEGMENT_BYTES - done,
				    (off_t)done);

		if (got <= 0)
			die("cannot read the segment");
		done += (size_t)got;
	}
	count_access(reader, now_ns() - began);
	return count_rows(reader->buffer, SEGMENT_BYTES);
}

int main(int argc, char **argv)
{
	return run_column_store(argc, argv, scan_read);
}
