/*
 * What looks like a long poll: a server with a thread for each connection hands the requests of three
 * of them to one worker thread of its own, which sleeps for 30 ms with each, and waits until that has
 * done; those of two more wait for a lock that whoever has it sleeps with for 30 ms. Quick requests of
 * another client come and go meanwhile, which take the locks, too. Prints how many requests took long:
 * `slow=`.
 */
#include "shape.h"

#define HANDED 3
#define LOCKED 2

static int door;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int handed, finished;
static bool closed;
static atomic_int slow;

static void work_for_others(int id)
{
	pthread_mutex_lock(&lock);
	while (!closed) {
		if (finished == handed) {
			pthread_cond_wait(&work, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		sleep_ms(30);
		pthread_mutex_lock(&lock);
		finished++;
		pthread_cond_broadcast(&done);
	}
	pthread_mutex_unlock(&lock);
}

static void hand_over(void)
{
	struct wait wait;
	int mine;

	pthread_mutex_lock(&lock);
	mine = ++handed;
	pthread_cond_signal(&work);
	wait = wait_begins();
	while (finished < mine)
		pthread_cond_wait(&done, &lock);
	wait_ends(wait, 0);
	pthread_mutex_unlock(&lock);
}

static void answer(int id)
{
	int fd = accept(door, NULL, NULL);
	char kind;

	while (read(fd, &kind, 1) == 1) {
		if (kind == 'h') {
			hand_over();
		} else if (kind == 'l') {
			lock_timed(&other, 1);
			sleep_ms(30);
			pthread_mutex_unlock(&other);
		} else {
			pthread_mutex_lock(&lock);
			pthread_cond_broadcast(&done);
			pthread_mutex_unlock(&lock);
		}
		slow += kind != 'q';
		if (write(fd, &kind, 1) != 1)
			break;
	}
	close(fd);
}

static void request(int id)
{
	char kind = id < HANDED ? 'h' : id < HANDED + LOCKED ? 'l' : 'q';
	int fd = enter(door);

	while (going()) {
		ask_by_poll(fd, kind);
		sleep_ms(kind == 'q' ? 4 : 1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_processes("client", HANDED + LOCKED + 1, request);
	start_threads("worker", 1, work_for_others);
	until_workers_wait();
	start_threads("server", HANDED + LOCKED + 1, answer);
	run_for(seconds);
	for (int i = 0; i < crew_size; i++)
		if (crew[i].process)
			waitpid(crew[i].process, NULL, 0);
	pthread_mutex_lock(&lock);
	closed = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < crew_size; i++)
		if (!crew[i].process)
			pthread_join(crew[i].thread, NULL);
	printf("slow=%d\n", slow);
	return TRUTH({ "slow-peer,turn-taking,turn,peer,timer", "worker", "sleep" },
		     { "futex-convoy,turn-taking,turn,timer", "server", "sleep" });
}
