/*
 * Threads of an interpreter, of which one at a time runs, share a lock of their program: a semaphore,
 * which whoever lets go takes again before the one that it has woken. Its holder sleeps for 6 ms.
 * Between two waits for the lock each waits for the interpreter, which has two words.
 */
#include "shape.h"
#include <semaphore.h>

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_free = PTHREAD_COND_INITIALIZER;
static bool is_taken;
static sem_t account;

static void enter_interpreter(void)
{
	pthread_mutex_lock(&interpreter);
	while (is_taken)
		pthread_cond_wait(&is_free, &interpreter);
	is_taken = true;
	pthread_mutex_unlock(&interpreter);
}

static void leave_interpreter(void)
{
	pthread_mutex_lock(&interpreter);
	is_taken = false;
	pthread_cond_signal(&is_free);
	pthread_mutex_unlock(&interpreter);
}

static void lock_account(void)
{
	struct wait wait;

	if (!sem_trywait(&account))
		return;
	leave_interpreter();
	wait = wait_begins();
	while (sem_wait(&account))
		;
	wait_ends(wait, 0);
	enter_interpreter();
}

static void book(int id)
{
	enter_interpreter();
	while (going()) {
		lock_account();
		leave_interpreter();
		sleep_ms(6);
		enter_interpreter();
		sem_post(&account);
		compute_ms(0.1);
	}
	leave_interpreter();
}

/* Keeps the interpreter busy, so that the others wait for it. */
static void count(int id)
{
	while (going()) {
		enter_interpreter();
		compute_ms(0.2);
		leave_interpreter();
		sleep_ms(0.2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	sem_init(&account, 0, 1);
	start_threads("clerk", 4, book);
	start_threads("counter", 1, count);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "clerk-", "sleep" });
}
