/*
 * Two threads take two locks in opposite orders and wait for each other for good; a line says that
 * they are about to. Ends after ten seconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t both;

static void *take_both(void *first)
{
	pthread_mutex_t *mine = first, *other = mine == locks ? locks + 1 : locks;

	pthread_mutex_lock(mine);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(other);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, take_both, locks + i);
	puts("waiting");
	fflush(stdout);
	sleep(10);
	_exit(0);
}
