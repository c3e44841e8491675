/*
 * Healthy: a server with a thread for each connection holds eight long polls open until another
 * client posts something, every 80 ms. Four threads wait for that with a condition variable, four
 * with an eventfd. Prints how many long polls were answered: `polls=`.
 */
#include "shape.h"
#include <sys/eventfd.h>

#define POLLERS 8

static int door;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static int news[POLLERS], posts;
static atomic_int polls;

static void post(void)
{
	pthread_mutex_lock(&lock);
	posts++;
	pthread_cond_broadcast(&posted);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < POLLERS; i++)
		if (eventfd_write(news[i], 1))
			die("eventfd");
}

static void wait_for_post(void)
{
	int seen;

	pthread_mutex_lock(&lock);
	for (seen = posts; posts == seen;)
		pthread_cond_wait(&posted, &lock);
	pthread_mutex_unlock(&lock);
}

static void poll_for_post(int fd, int told)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLRDHUP }, { .fd = told, .events = POLLIN } };
	eventfd_t value;

	fcntl(told, F_SETFL, O_NONBLOCK);
	eventfd_read(told, &value);
	if (poll(fds, 2, -1) < 0)
		die("poll");
}

static void answer(int id)
{
	int fd = accept(door, NULL, NULL);
	char kind;

	while (read(fd, &kind, 1) == 1) {
		if (kind == '!') {
			post();
		} else {
			if (id % 2)
				poll_for_post(fd, news[id / 2 % POLLERS]);
			else
				wait_for_post();
			polls++;
		}
		if (write(fd, &kind, 1) != 1)
			break;
	}
	close(fd);
}

static void listen_for_posts(int id)
{
	int fd = enter(door);

	while (going())
		ask_by_poll(fd, '?');
	close(fd);
}

static void send_posts(int id)
{
	int fd = enter(door);
	uint64_t next = now_ns();

	while (going()) {
		sleep_until(next += 80 * MILLISECOND);
		ask_by_poll(fd, '!');
	}
	/* Those that have just asked again are to end, too. */
	for (int i = 0; i < 10; i++) {
		sleep_ms(10);
		ask_by_poll(fd, '!');
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < POLLERS; i++)
		news[i] = eventfd(0, EFD_CLOEXEC);
	door = open_door(AF_INET);
	start_processes("listener", POLLERS, listen_for_posts);
	start_processes("poster", 1, send_posts);
	start_threads("server", POLLERS + 1, answer);
	run_for(seconds);
	join_crew();
	printf("polls=%d\n", polls);
	return HEALTHY;
}
