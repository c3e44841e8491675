/* Threads that only are there: one per connection, waiting for a client that says nothing. */
#ifndef MYSTERIES_IDLE_THREADS_H
#define MYSTERIES_IDLE_THREADS_H

#include "common.h"
#include <semaphore.h>

#define IDLE_STACK_BYTES (32 << 10)

struct idle_thread {
	pthread_t thread;
	sem_t end;
};

static struct {
	struct idle_thread *threads;
	int count;
	sem_t ready;
} idle;

static inline void idle_wait(sem_t *semaphore)
{
	while (sem_wait(semaphore) && errno == EINTR)
		;
}

static inline void *idle_thread_main(void *self)
{
	sem_post(&idle.ready);
	idle_wait(&((struct idle_thread *)self)->end);
	return NULL;
}

/* One after the other, here and below: thousands at once would queue for the CPUs. */
static inline void start_idle_threads(int count)
{
	pthread_attr_t attributes;

	idle.threads = calloc((size_t)count, sizeof *idle.threads);
	if (!idle.threads)
		die("no memory for %d threads", count);
	sem_init(&idle.ready, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IDLE_STACK_BYTES);
	for (; idle.count < count; idle.count++) {
		struct idle_thread *one = &idle.threads[idle.count];

		sem_init(&one->end, 0, 0);
		errno = pthread_create(&one->thread, &attributes, idle_thread_main, one);
		if (errno)
			die("cannot start more than %d threads", idle.count);
		idle_wait(&idle.ready);
	}
	pthread_attr_destroy(&attributes);
}

static inline void end_idle_threads(void)
{
	for (int i = 0; i < idle.count; i++) {
		sem_post(&idle.threads[i].end);
		pthread_join(idle.threads[i].thread, NULL);
	}
	free(idle.threads);
}

#endif
