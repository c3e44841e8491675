/* Threads that only are there: one per connection, waiting for a client that says nothing. */
#ifndef MYSTERIES_IDLE_THREADS_H
#define MYSTERIES_IDLE_THREADS_H

#include "common.h"

#define IDLE_STACK_BYTES (32 << 10)

static struct idle_threads {
	int bell[2]; /* one byte in it means: end, and tell the next */
	int done[2]; /* the last one writes a byte */
	_Atomic int left;
} idle;

static inline void *idle_thread(void *unused)
{
	char byte;

	if (read(idle.bell[0], &byte, 1) != 1)
		die("cannot wait for a client");
	if (write(--idle.left ? idle.bell[1] : idle.done[1], &byte, 1) != 1)
		die("cannot wake the next thread");
	return unused;
}

static inline void start_idle_threads(int count)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (pipe2(idle.bell, O_CLOEXEC) || pipe2(idle.done, O_CLOEXEC))
		die("cannot create a pipe");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IDLE_STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (idle.left = count; count; count--) {
		errno = pthread_create(&thread, &attributes, idle_thread, NULL);
		if (errno)
			die("cannot start %d more threads", count);
	}
	pthread_attr_destroy(&attributes);
}

/* One after the other: thousands that end at once would queue for the CPUs. */
static inline void end_idle_threads(void)
{
	char byte = 0;

	if (write(idle.bell[1], &byte, 1) != 1 || read(idle.done[0], &byte, 1) != 1)
		die("cannot end the threads");
}

#endif
