/*
 * Four readers hold a read-write lock for 6 ms of sleep each, and overlap; a writer waits until
 * there is none of them, for the C library prefers readers.
 */
#include "shape.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void read_table(int id)
{
	sleep_ms(id);
	while (going()) {
		pthread_rwlock_rdlock(&table);
		sleep_ms(6);
		pthread_rwlock_unlock(&table);
		sleep_ms(3);
	}
}

static void write_table(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		pthread_rwlock_wrlock(&table);
		wait_ends(wait, 0);
		compute_ms(0.1);
		pthread_rwlock_unlock(&table);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("lister", 4, read_table);
	start_threads("editor", 1, write_table);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,peer,timer", "lister-", "sleep" });
}
