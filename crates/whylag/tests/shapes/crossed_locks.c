/*
 * Two threads take two locks in opposite order and wait for each other until the end; three more
 * queue behind them.
 */
#include "shape.h"

#define THREADS 5

static pthread_mutex_t debit = PTHREAD_MUTEX_INITIALIZER, credit = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t waits_since[THREADS];

static void wait_for_ever(int id, pthread_mutex_t *lock)
{
	waits_since[id] = now_ns();
	pthread_mutex_lock(lock);
	die("it is no deadlock");
}

static void transfer(int id)
{
	if (id < 2) {
		pthread_mutex_lock(id ? &credit : &debit);
		sleep_ms(40);
		wait_for_ever(id, id ? &debit : &credit);
	}
	sleep_ms(80);
	wait_for_ever(id, &debit);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("transfer", THREADS, transfer);
	run_for(seconds);
	for (int i = 0; i < THREADS; i++)
		shared->lost_ns[0] += now_ns() - waits_since[i];
	TRUTH({ "turn,deadlock", "transfer-", "deadlock" });
	fflush(NULL);
	_exit(0);
}
