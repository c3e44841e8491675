/* Sockets on 127.0.0.1, on ports that the kernel chooses. */
#ifndef MYSTERIES_LOOPBACK_H
#define MYSTERIES_LOOPBACK_H

#include "common.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

/* A bound socket of this type; its address is put into `address`. */
static inline int bound_socket(int type, struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) ||
	    getsockname(fd, (struct sockaddr *)address, &length))
		die("cannot bind a socket to 127.0.0.1");
	return fd;
}

/* A socket that sends by multicast within the host, to a group that nobody has joined. */
static inline int published_socket(void)
{
	struct in_addr loopback = { .s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in group = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(0xefff2a01), /* 239.255.42.1 */
				     .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) ||
	    connect(fd, (struct sockaddr *)&group, sizeof group))
		die("cannot publish to 239.255.42.1 on the loopback interface");
	return fd;
}

/* A descriptor that only waits `ms` for what it receives, so that a thread sees the end. */
static inline void receive_timeout(int fd, long ms)
{
	struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* Receives and forgets so many bytes; false if the other side or the program ends before. */
static inline bool receive_all(int fd, size_t length)
{
	char bytes[4096];
	size_t got = 0;

	while (got < length) {
		size_t rest = length - got;
		ssize_t n = recv(fd, bytes, rest < sizeof bytes ? rest : sizeof bytes, 0);

		if (n > 0)
			got += (size_t)n;
		else if (n == 0 || errno != EAGAIN || !running())
			return false;
	}
	return true;
}

#endif
