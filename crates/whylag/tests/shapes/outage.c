/*
 * A total outage: 50 ms after the start the keeper takes the lock and sleeps for ever (a call to a
 * service that is gone, without a timeout). All others wait until the end; no wait ever ends.
 */
#include "shape.h"

#define HANDLERS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t waits_since[HANDLERS];

static void keep(int id)
{
	sleep_ms(50);
	pthread_mutex_lock(&lock);
	for (;;)
		sleep_ms(3600e3);
}

static void handle(int id)
{
	sleep_ms(60);
	waits_since[id] = now_ns();
	pthread_mutex_lock(&lock);
	die("nobody has the lock");
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("keeper", 1, keep);
	start_threads("handler", HANDLERS, handle);
	run_for(seconds);
	for (int i = 0; i < HANDLERS; i++)
		shared->lost_ns[0] += now_ns() - waits_since[i];
	TRUTH({ "turn,timer", "keeper-", "sleep" });
	fflush(NULL);
	_exit(0);
}
