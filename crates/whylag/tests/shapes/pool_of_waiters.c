/*
 * Eight callers need one of four workers, each of which waits for the same slow backend: one process
 * that sleeps for 4 ms a request. The workers are never idle and never busy.
 */
#include "shape.h"

#define CALLERS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, done[CALLERS];
static int door, queue[CALLERS], queued;
static bool is_done[CALLERS];

static void look_up(void)
{
	sleep_ms(4);
}

static void serve_slowly(void *nothing)
{
	serve(door, look_up);
}

static void work(int id)
{
	int backend = enter(door);

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!queued && going())
			pthread_cond_wait(&not_empty, &lock);
		if (!queued)
			break;
		int caller = queue[0];
		memmove(queue, queue + 1, sizeof *queue * (size_t)--queued);
		pthread_mutex_unlock(&lock);
		ask_timed(backend, 1);
		pthread_mutex_lock(&lock);
		is_done[caller] = true;
		pthread_cond_signal(&done[caller]);
	}
	pthread_mutex_unlock(&lock);
}

static void call(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		pthread_mutex_lock(&lock);
		queue[queued++] = id;
		is_done[id] = false;
		pthread_cond_signal(&not_empty);
		while (!is_done[id])
			pthread_cond_wait(&done[id], &lock);
		pthread_mutex_unlock(&lock);
		wait_ends(wait, 0);
		sleep_ms(1);
	}
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < CALLERS; i++)
		pthread_cond_init(&done[i], NULL);
	door = open_door(AF_UNIX);
	start_process("inventory", serve_slowly, NULL);
	start_threads("pool-worker", 4, work);
	start_threads("caller", CALLERS, call);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,peer,timer", "inventory", "sleep" },
		     { "turn,peer,timer", "inventory", "sleep" });
}
