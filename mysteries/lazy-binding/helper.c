/*
 * `sender PORT FD` gives the feed and counts the NAKs in the file; `disk-reader 0 FD` reads the
 * file, past the page cache, again and again.
 */
#include "feed.h"

#define PER_MILLISECOND 30
#define SNAPSHOT 400
#define BLOCK_BYTES (8L << 20)

static void give(int fd, uint64_t *number, int count)
{
	for (int i = 0; i < count; i++) {
		struct message message = { .number = (*number)++, .sent_ns = now_ns() };

		send(fd, &message, sizeof message, 0);
	}
}

/* On the wall clock, a snapshot at each full second. */
static void send_feed(int port, _Atomic uint64_t *naks)
{
	uint64_t number = 0, next = now_ns(), second = clock_ns(CLOCK_REALTIME) / SECOND, nak;
	struct sockaddr_in own, feed;
	int fd = bound_socket(&own);

	feed = own;
	feed.sin_port = htons((uint16_t)port);
	if (connect(fd, (struct sockaddr *)&feed, sizeof feed))
		die("cannot connect to the receiver");
	for (;; next += MILLISECOND) {
		sleep_until(next);
		give(fd, &number, PER_MILLISECOND);
		if (clock_ns(CLOCK_REALTIME) / SECOND != second) {
			second = clock_ns(CLOCK_REALTIME) / SECOND;
			give(fd, &number, SNAPSHOT);
		}
		while (recv(fd, &nak, sizeof nak, MSG_DONTWAIT) == sizeof nak)
			++*naks;
	}
}

static void read_disk(int fd)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	fcntl(fd, F_SETFL, O_DIRECT);
	for (off_t at = 0;; at = (at + BLOCK_BYTES) % BUSY_FILE_BYTES)
		if (pread(fd, block, BLOCK_BYTES, at) != BLOCK_BYTES)
			die("cannot read the file");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("for lazy-binding-faulty and lazy-binding-fixed only");
	prctl(PR_SET_NAME, argv[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(argv[0], "sender") == 0)
		send_feed(atoi(argv[1]), map_counter(atoi(argv[2])));
	read_disk(atoi(argv[2]));
	return 0;
}
