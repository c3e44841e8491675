/*
 * Healthy: eight workers wait for jobs, of which one comes every 10 ms; a hundred sessions wait for
 * messages that do not come.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int jobs, quiet[2];
static bool is_done;

static void work(int id)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!jobs && !is_done)
			pthread_cond_wait(&not_empty, &lock);
		if (!jobs)
			break;
		jobs--;
		pthread_mutex_unlock(&lock);
		compute_ms(0.5);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

static void hold_session(int id)
{
	char byte;

	while (read(quiet[0], &byte, 1) > 0)
		;
}

static void accept_jobs(int id)
{
	for (uint64_t next = now_ns(); going(); next += 10 * MILLISECOND) {
		sleep_until(next);
		pthread_mutex_lock(&lock);
		jobs++;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	is_done = true;
	pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(quiet))
		die("pipe");
	start_threads("session", 100, hold_session);
	start_threads("worker", 8, work);
	start_threads("acceptor", 1, accept_jobs);
	run_for(seconds);
	close(quiet[1]);
	join_crew();
	return HEALTHY;
}
