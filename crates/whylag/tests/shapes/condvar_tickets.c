/*
 * Turns by ticket: each thread draws a number and waits on one condition variable, which is
 * broadcast, until its number is up. A turn is 5 ms of sleep.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next_turn = PTHREAD_COND_INITIALIZER;
static uint64_t drawn, up;

static void take_turns(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		pthread_mutex_lock(&lock);
		uint64_t mine = drawn++;
		while (mine != up)
			pthread_cond_wait(&next_turn, &lock);
		pthread_mutex_unlock(&lock);
		wait_ends(wait, 0);
		sleep_ms(5);
		pthread_mutex_lock(&lock);
		up++;
		pthread_cond_broadcast(&next_turn);
		pthread_mutex_unlock(&lock);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("patient", 5, take_turns);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "patient-", "sleep" });
}
