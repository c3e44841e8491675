/*
 * One thread each that sleeps for good in a read of a pipe and of a socket, in accept and in flock. Says
 * `NAME=INODE` of what each waits for.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void *read_it(void *fd)
{
	char byte;

	while (read((long)fd, &byte, 1) > 0)
		;
	return NULL;
}

static void *accept_it(void *fd)
{
	accept((long)fd, NULL, NULL);
	return NULL;
}

static void *lock_it(void *fd)
{
	flock((long)fd, LOCK_EX);
	return NULL;
}

static void sleep_in(const char *name, void *(*call)(void *), long fd)
{
	pthread_t thread;
	struct stat file;

	if (fd < 0 || fstat(fd, &file) || pthread_create(&thread, NULL, call, (void *)fd))
		exit(1);
	printf("%s=%lu\n", name, file.st_ino);
}

int main(void)
{
	char path[] = "/tmp/asleep.XXXXXX";
	int fd, held = mkstemp(path), pair[2], sockets[2], listening = socket(AF_INET, SOCK_STREAM, 0);

	if (held < 0 || flock(held, LOCK_EX) || pipe(pair) || listen(listening, 1) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	/* The same numbers in another process are not these files. */
	for (int i = 0; i < 20; i++)
		open("/dev/null", O_RDONLY);
	fd = open(path, O_RDONLY);
	unlink(path);
	sleep_in("pipe", read_it, dup(pair[0]));
	sleep_in("socket", read_it, dup(sockets[0]));
	sleep_in("accept", accept_it, dup(listening));
	sleep_in("flock", lock_it, fd);
	puts("ready=1");
	fflush(stdout);
	pause();
	return 0;
}
