/*
 * A pool of one connection, kept by a mutex and a condition variable: six requests share it, and
 * the database at its other end sleeps for 5 ms a query.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;
static bool is_out;
static int door, connection;

static void query(void)
{
	sleep_ms(5);
}

static void serve_queries(void *nothing)
{
	serve(door, query);
}

static void borrow(void)
{
	pthread_mutex_lock(&lock);
	while (is_out)
		pthread_cond_wait(&given_back, &lock);
	is_out = true;
	pthread_mutex_unlock(&lock);
}

static void give_back(void)
{
	pthread_mutex_lock(&lock);
	is_out = false;
	pthread_cond_signal(&given_back);
	pthread_mutex_unlock(&lock);
}

static void request(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		borrow();
		wait_ends(wait, 0);
		ask_timed(connection, 1);
		give_back();
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_UNIX);
	start_process("database", serve_queries, NULL);
	connection = enter(door);
	start_threads("request", 6, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,timer", "database", "sleep" }, { "peer,timer", "database", "sleep" });
}
