/*
 * Front threads wait for the catalogue's lock, whose holder waits for the volume's lock, whose
 * holder, the archiver, sleeps for 15 ms (a network mount that is slow).
 */
#include "shape.h"

static pthread_mutex_t catalogue = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t volume = PTHREAD_MUTEX_INITIALIZER;

static void archive(int id)
{
	while (going()) {
		pthread_mutex_lock(&volume);
		sleep_ms(15);
		pthread_mutex_unlock(&volume);
		sleep_ms(3);
	}
}

static void update(int id)
{
	while (going()) {
		lock_timed(&catalogue, 0);
		lock_timed(&volume, 1);
		pthread_mutex_unlock(&volume);
		pthread_mutex_unlock(&catalogue);
		sleep_ms(1);
	}
}

static void browse(int id)
{
	while (going()) {
		lock_timed(&catalogue, 0);
		pthread_mutex_unlock(&catalogue);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("archiver", 1, archive);
	start_threads("updater", 1, update);
	start_threads("front", 4, browse);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "archiver-", "sleep" }, { "turn,timer", "archiver-", "sleep" });
}
