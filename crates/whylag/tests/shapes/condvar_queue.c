/*
 * Five callers put jobs into a queue and wait on a condition variable of their own until it is
 * done; one worker computes for 3 ms a job.
 */
#include "shape.h"

#define CALLERS 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, done[CALLERS];
static int queue[CALLERS], queued;
static bool is_done[CALLERS];

static void thumbnail(int id)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!queued && going())
			pthread_cond_wait(&not_empty, &lock);
		if (!queued)
			break;
		int caller = queue[0];
		memmove(queue, queue + 1, sizeof *queue * (size_t)--queued);
		pthread_mutex_unlock(&lock);
		compute_ms(3);
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
		sleep_ms(2);
	}
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < CALLERS; i++)
		pthread_cond_init(&done[i], NULL);
	start_threads("thumbnailer", 1, thumbnail);
	until_workers_wait();
	start_threads("caller", CALLERS, call);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,cpu,peer", "thumbnailer-", "cpu" });
}
