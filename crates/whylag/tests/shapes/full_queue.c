/*
 * Three parsers put rows into a queue that has room for four; one indexer takes them, computes for
 * 2 ms a row, and never finds the queue empty: it begins when the queue is full.
 */
#include "shape.h"

#define ROOM 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int rows, parsers;

static __attribute__((noinline)) void rows_put(void)
{
	struct wait wait = wait_begins();
	bool waited = false;

	pthread_mutex_lock(&lock);
	for (; rows == ROOM; waited = true)
		pthread_cond_wait(&not_full, &lock);
	rows++;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
	if (waited)
		wait_ends(wait, 0);
}

static __attribute__((noinline)) bool rows_get(void)
{
	pthread_mutex_lock(&lock);
	while (!rows && parsers)
		pthread_cond_wait(&not_empty, &lock);
	bool is_row = rows > 0;
	if (is_row)
		rows--;
	pthread_cond_signal(&not_full);
	pthread_mutex_unlock(&lock);
	return is_row;
}

static void parse(int id)
{
	while (going()) {
		rows_put();
		sleep_ms(0.5);
	}
	pthread_mutex_lock(&lock);
	if (!--parsers)
		pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void index_rows(int id)
{
	while (rows_get())
		compute_ms(2);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	parsers = 3;
	start_threads("parser", 3, parse);
	sleep_ms(20);
	start_threads("indexer", 1, index_rows);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,peer", "indexer-", "cpu" });
}
