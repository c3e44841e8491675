/*
 * Loses time in a way that has no name: writes to a socket whose peer, a child,
 * empties it once in 30 ms. Prints wrote=time spent in write().
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define ROUNDS	10

static char block[64 * 1024];

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

int main(void)
{
	int ends[2], room = 4096;
	uint64_t began;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)))
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
