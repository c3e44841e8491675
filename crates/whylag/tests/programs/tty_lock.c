/*
 * Loses time in a way that has no name: writes to a terminal to which a child writes all the time, more
 * than another child reads; the kernel lets in one writer at a time, for as long as its call takes.
 * Prints wrote=time spent in write().
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "clock.h"

#define ROUNDS	4

static char block[64 * 1024];

static void read_slowly(int terminal)
{
	for (;;) {
		sleep_ms(10);
		if (read(terminal, block, 16 * 1024) <= 0)
			_exit(0);
	}
}

static void write_always(int terminal)
{
	while (write(terminal, block, sizeof(block)) > 0)
		;
	_exit(0);
}

int main(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct termios raw;
	pid_t reader, writer;
	uint64_t wrote = 0;

	if (master < 0 || grantpt(master) || unlockpt(master))
		return 1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave < 0 || tcgetattr(slave, &raw))
		return 1;
	cfmakeraw(&raw);
	tcsetattr(slave, TCSANOW, &raw);
	reader = fork();
	if (!reader)
		read_slowly(master);
	writer = fork();
	if (!writer)
		write_always(slave);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began;

		sleep_ms(10);	/* the writer is in its call again */
		began = now_ns();
		if (write(slave, "x", 1) != 1)
			return 1;
		wrote += now_ns() - began;
	}
	kill(writer, SIGKILL);
	kill(reader, SIGKILL);
	waitpid(writer, NULL, 0);
	waitpid(reader, NULL, 0);
	printf("wrote=%lu\n", wrote);
	return 0;
}
