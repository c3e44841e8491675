/*
 * A child has a file locked for 30 ms of each 31 ms or so. The parent asks for the lock without
 * waiting, and if it is refused sleeps for 1 ms and asks again; each second time it lets go first of
 * what it might have, as databases do. With an argument the locks are those of fcntl, else of flock.
 * Prints tries, how often it asked again, and slept, how long it slept before it did.
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

static int of_fcntl;

/* LOCK_EX, LOCK_EX | LOCK_NB or LOCK_UN. */
static int change_lock(int fd, int operation)
{
	struct flock lock = { .l_type = operation == LOCK_UN ? F_UNLCK : F_WRLCK };

	if (!of_fcntl)
		return flock(fd, operation);
	return fcntl(fd, operation == LOCK_EX ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
}

static void hold(const char *path)
{
	int fd = open(path, O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		change_lock(fd, LOCK_EX);
		sleep_ms(30);
		change_lock(fd, LOCK_UN);
		sleep_ms(3);
	}
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/whylag-lock-XXXXXX";
	int fd = new_file(path), tries = 0;
	pid_t child = fork();
	uint64_t slept = 0;

	(void)argv;
	of_fcntl = argc > 1;
	if (child == 0)
		hold(path);
	sleep_ms(10);
	for (int turn = 0; turn < TURNS; turn++) {
		while (change_lock(fd, LOCK_EX | LOCK_NB)) {
			uint64_t began;

			if (errno != EWOULDBLOCK)
				abort();
			if (tries % 2)
				change_lock(fd, LOCK_UN);
			began = now_ns();
			sleep_ms(1);
			slept += now_ns() - began;
			tries++;
		}
		change_lock(fd, LOCK_UN);
		sleep_ms(5); /* its own */
	}
	printf("tries=%d slept=%lu\n", tries, slept);
	unlink(path);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
