/*
 * A server with the lock of an interpreter: its thread that answers waits for it 5 ms at a time, and then
 * asks the one thread that computes to drop it. Clients of other processes wait for answers meanwhile.
 */
#include "shape.h"

#define CLIENTS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dropped, taken;
static bool is_locked, was_handed_on;
static _Atomic bool drop_is_asked;
static int door;

static void take(void)
{
	pthread_mutex_lock(&lock);
	while (is_locked) {
		uint64_t until = now_ns() + 5 * MILLISECOND;
		struct timespec t = { (time_t)(until / SECOND), (long)(until % SECOND) };

		if (pthread_cond_timedwait(&dropped, &lock, &t) == ETIMEDOUT && is_locked)
			drop_is_asked = true;
	}
	is_locked = was_handed_on = true;
	drop_is_asked = false;
	pthread_cond_signal(&taken);
	pthread_mutex_unlock(&lock);
}

static void drop(void)
{
	pthread_mutex_lock(&lock);
	is_locked = false;
	pthread_cond_signal(&dropped);
	pthread_mutex_unlock(&lock);
}

/* Whoever was asked for it lets the other one have it first. */
static void hand_on(void)
{
	drop();
	pthread_mutex_lock(&lock);
	while (!was_handed_on && going())
		pthread_cond_wait(&taken, &lock);
	pthread_mutex_unlock(&lock);
}

/* It looks now and then whether somebody asks for the lock: after what takes 12 ms. */
static void compute_always(int id)
{
	while (going()) {
		take();
		do
			compute_ms(12);
		while (!drop_is_asked && going());
		was_handed_on = false;
		hand_on();
	}
}

static bool answer_one(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		return false;
	take();
	compute_ms(0.1);
	drop();
	return write(fd, &byte, 1) == 1;
}

static void answer_all(int id)
{
	struct pollfd clients[CLIENTS];
	int left = CLIENTS;

	for (int i = 0; i < CLIENTS; i++)
		clients[i] = (struct pollfd){ .fd = accept(door, NULL, NULL), .events = POLLIN };
	while (left) {
		poll(clients, CLIENTS, -1);
		for (int i = 0; i < CLIENTS; i++) {
			if (!clients[i].revents || answer_one(clients[i].fd))
				continue;
			close(clients[i].fd);
			clients[i].fd = -1;
			left--;
		}
	}
}

static void request(int id)
{
	int fd = enter(door);

	while (going()) {
		ask_timed(fd, 0);
		sleep_ms(5 + id);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&dropped, &monotonic);
	door = open_door(AF_INET);
	start_processes("client", CLIENTS, request);
	start_threads("computing", 1, compute_always);
	start_threads("answering", 1, answer_all);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,turn,cpu", "computing-", "cpu" });
}
