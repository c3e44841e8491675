/* What the receiver and its helpers have in common. */
#ifndef FEED_H
#define FEED_H

#include "../common.h"
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define BUSY_FILE_BYTES (64L << 20)

/* A datagram of the feed. */
struct message {
	uint64_t number;
	uint64_t sent_ns;
};

static inline int bound_socket(struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) ||
	    getsockname(fd, (struct sockaddr *)address, &length))
		die("cannot make a UDP socket");
	return fd;
}

/* A number that processes share, in a file. */
static inline _Atomic uint64_t *map_counter(int fd)
{
	void *counter;

	if (ftruncate(fd, sizeof(uint64_t)))
		die("cannot make a file for a counter");
	counter = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		die("cannot share a counter");
	return counter;
}

#endif
