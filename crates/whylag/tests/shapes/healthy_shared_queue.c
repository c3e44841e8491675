/*
 * Healthy: four workers take jobs from one pipe, each with a mutex in hand while it reads, as the
 * queues between the processes of many languages do. A job comes every 10 ms.
 */
#include "shape.h"

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static int jobs[2];

static void work(int id)
{
	char job;

	do {
		pthread_mutex_lock(&reading);
		if (read(jobs[0], &job, 1) != 1)
			die("no more jobs");
		pthread_mutex_unlock(&reading);
		if (job != 'q')
			compute_ms(0.2);
	} while (job != 'q');
}

static void put(char job)
{
	if (write(jobs[1], &job, 1) != 1)
		die("nobody takes jobs");
}

static void produce(int id)
{
	for (uint64_t at = now_ns(); going(); at += 10 * MILLISECOND) {
		sleep_until(at);
		put('j');
	}
	for (int i = 0; i < 4; i++)
		put('q');
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(jobs))
		die("pipe");
	start_threads("worker", 4, work);
	until_workers_wait();
	start_threads("producer", 1, produce);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
