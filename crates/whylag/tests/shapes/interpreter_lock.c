/*
 * An interpreter with one lock for all threads: who wants it waits 5 ms on a condition variable and
 * then asks its holder to drop it. Three threads compute all the time, so two always wait.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dropped, taken;
static bool is_locked;
static _Atomic bool drop_is_asked;
static int last = -1;

static void take(int id)
{
	pthread_mutex_lock(&lock);
	while (is_locked) {
		uint64_t until = now_ns() + 5 * MILLISECOND;
		struct timespec t = { (time_t)(until / SECOND), (long)(until % SECOND) };

		if (pthread_cond_timedwait(&dropped, &lock, &t) == ETIMEDOUT && is_locked)
			drop_is_asked = true;
	}
	is_locked = true;
	last = id;
	drop_is_asked = false;
	pthread_cond_signal(&taken);
	pthread_mutex_unlock(&lock);
}

/* Whoever drops it lets another take it first. */
static void drop(int id)
{
	pthread_mutex_lock(&lock);
	is_locked = false;
	pthread_cond_signal(&dropped);
	while (last == id && going()) {
		uint64_t until = now_ns() + 5 * MILLISECOND;
		struct timespec t = { (time_t)(until / SECOND), (long)(until % SECOND) };

		pthread_cond_timedwait(&taken, &lock, &t);
	}
	pthread_mutex_unlock(&lock);
}

static void interpret(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		take(id);
		wait_ends(wait, 0);
		while (!drop_is_asked && going())
			compute_ms(0.05);
		wait = wait_begins();
		drop(id);
		wait_ends(wait, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&dropped, &monotonic);
	pthread_cond_init(&taken, &monotonic);
	start_threads("script", 3, interpret);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,cpu", "script-", "cpu" });
}
