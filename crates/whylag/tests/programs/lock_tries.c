/*
 * A child has a file locked for 30 ms of each 31 ms or so. The parent asks for the lock without
 * waiting, and if it is refused sleeps for 1 ms and asks again. Prints tries, how often it asked
 * again, and slept, how long it slept before it did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define TURNS 15

static int new_file(char *path)
{
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	return fd;
}

static void hold(const char *path)
{
	int fd = open(path, O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		flock(fd, LOCK_EX);
		sleep_ms(30);
		flock(fd, LOCK_UN);
		sleep_ms(3);
	}
}

int main(void)
{
	char path[] = "/tmp/whylag-lock-XXXXXX";
	int fd = new_file(path), tries = 0;
	pid_t child = fork();
	uint64_t slept = 0;

	if (child == 0)
		hold(path);
	sleep_ms(10);
	for (int turn = 0; turn < TURNS; turn++) {
		while (flock(fd, LOCK_EX | LOCK_NB)) {
			uint64_t began = now_ns();

			if (errno != EWOULDBLOCK)
				abort();
			sleep_ms(1);
			slept += now_ns() - began;
			tries++;
		}
		flock(fd, LOCK_UN);
		sleep_ms(5); /* its own */
	}
	printf("tries=%d slept=%lu\n", tries, slept);
	unlink(path);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
