/*
 * A thread has a lock for reading, and another one waits for good to have it for writing; a line says
 * that it is about to. Ends after ten seconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static void *wait_to_write(void *unused)
{
	pthread_barrier_wait(&both);
	pthread_rwlock_wrlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	pthread_rwlock_rdlock(&lock);
	pthread_create(&thread, NULL, wait_to_write, NULL);
	pthread_barrier_wait(&both);
	puts("waiting");
	fflush(stdout);
	sleep(10);
	_exit(0);
}
