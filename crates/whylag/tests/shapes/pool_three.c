/*
 * A pool of three connections for nine requests; behind each is a backend process of its own that
 * sleeps for 8 ms a query.
 */
#include "shape.h"

#define POOL 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;
static int doors[POOL], connections[POOL], unused = POOL;

static void query(void)
{
	sleep_ms(8);
}

static void serve_queries(void *door)
{
	serve(*(int *)door, query);
}

static int borrow(void)
{
	int connection;

	pthread_mutex_lock(&lock);
	while (!unused)
		pthread_cond_wait(&given_back, &lock);
	connection = connections[--unused];
	pthread_mutex_unlock(&lock);
	return connection;
}

static void give_back(int connection)
{
	pthread_mutex_lock(&lock);
	connections[unused++] = connection;
	pthread_cond_signal(&given_back);
	pthread_mutex_unlock(&lock);
}

static void request(int id)
{
	while (going()) {
		struct wait wait = wait_begins();
		int connection = borrow();

		wait_ends(wait, 0);
		ask_timed(connection, 1);
		give_back(connection);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < POOL; i++) {
		doors[i] = open_door(AF_UNIX);
		start_process("db-backend", serve_queries, &doors[i]);
		connections[i] = enter(doors[i]);
	}
	start_threads("request", 9, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,pool,peer,timer", "db-backend", "sleep" }, { "peer,timer", "db-backend", "sleep" });
}
