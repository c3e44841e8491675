/* Threads that only are there: one per connection, waiting for a client that says nothing. */
#ifndef MYSTERIES_IDLE_THREADS_H
#define MYSTERIES_IDLE_THREADS_H

#include "common.h"

#define IDLE_STACK_BYTES (32 << 10)

static struct idle_threads {
	int bell[2]; /* one byte in it means: end, and tell the next */
	pthread_t *threads;
	int count;
} idle;

static inline void *idle_thread(void *unused)
{
	char byte;

	if (read(idle.bell[0], &byte, 1) != 1 || write(idle.bell[1], &byte, 1) != 1)
		die("cannot wait for a client");
	return unused;
}

static inline void start_idle_threads(int count)
{
	pthread_attr_t attributes;

	idle.threads = calloc((size_t)count, sizeof *idle.threads);
	if (!idle.threads || pipe2(idle.bell, O_CLOEXEC))
		die("cannot create a pipe");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IDLE_STACK_BYTES);
	for (; idle.count < count; idle.count++) {
		errno = pthread_create(&idle.threads[idle.count], &attributes, idle_thread, NULL);
		if (errno)
			die("cannot start more than %d threads", idle.count);
	}
	pthread_attr_destroy(&attributes);
}

/* One after the other: thousands that end at once would queue for the CPUs. */
static inline void end_idle_threads(void)
{
	if (write(idle.bell[1], "", 1) != 1)
		die("cannot end the threads");
	for (int i = 0; i < idle.count; i++)
		pthread_join(idle.threads[i], NULL);
	free(idle.threads);
}

#endif
