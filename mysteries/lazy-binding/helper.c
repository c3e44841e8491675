/*
 * `sender FD` gives the feed to whoever receives now, as the file says, and counts the NAKs;
 * `disk-reader FD` reads the file, past the page cache, again and again.
 */
#include "feed.h"

#define PER_MILLISECOND 30
#define BLOCK_BYTES (8L << 20)

static void send_feed(struct state *state)
{
	uint64_t next = now_ns(), nak;
	struct sockaddr_in to;
	struct message message = { 0 };
	int fd = bound_socket(SOCK_DGRAM, &to);

	for (;; next += MILLISECOND) {
		sleep_until(next);
		to.sin_port = htons((uint16_t)state->port);
		for (int i = 0; to.sin_port && i < PER_MILLISECOND; i++, message.number++)
			sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&to, sizeof to);
		while (recv(fd, &nak, sizeof nak, MSG_DONTWAIT) == sizeof nak)
			state->naks++;
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
	int fd = argc == 2 ? atoi(argv[1]) : 0;

	if (!fd)
		die("for lazy-binding-faulty and lazy-binding-fixed only");
	prctl(PR_SET_NAME, argv[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(argv[0], "sender") == 0)
		send_feed(map_state(fd));
	read_disk(fd);
	return 0;
}
