/*
 * Writes to a connection over loopback whose peer, a child, empties it once in 30 ms. Prints wrote=time
 * spent in write().
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define ROUNDS	10

static char block[256 * 1024];

static void read_slowly(int fd)
{
	for (;;) {
		sleep_ms(30);
		for (ssize_t left = sizeof(block); left > 0;) {
			ssize_t got = read(fd, block, left);

			if (got <= 0)
				_exit(0);
			left -= got;
		}
	}
}

__attribute__((noinline)) static void send_blocks(int fd)
{
	for (int n = 0; n < ROUNDS; n++) {
		ssize_t left = sizeof(block);

		while (left > 0) {
			ssize_t wrote = write(fd, block, left);

			if (wrote <= 0)
				_exit(1);
			left -= wrote;
		}
	}
}

/* The two ends of a connection with little room. */
static int connect_ends(int ends[2])
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(loopback);
	int room = 32768, door = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (door < 0 || ends[0] < 0 ||
	    setsockopt(door, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) ||
	    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) ||
	    bind(door, (void *)&loopback, length) || listen(door, 1) ||
	    getsockname(door, (void *)&loopback, &length) ||
	    connect(ends[0], (void *)&loopback, length))
		return -1;
	ends[1] = accept(door, NULL, NULL);
	close(door);
	return ends[1] < 0 ? -1 : 0;
}

int main(void)
{
	uint64_t began;
	int ends[2];
	pid_t child;

	if (connect_ends(ends))
		return 1;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		read_slowly(ends[1]);
	}
	close(ends[1]);
	began = now_ns();
	send_blocks(ends[0]);
	printf("wrote=%lu\n", now_ns() - began);
	fflush(stdout);
	close(ends[0]);
	waitpid(child, NULL, 0);
	return 0;
}
