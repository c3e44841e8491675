/*
 * Priority inversion through a condition variable: the urgent threads (nice -10, CPU 1) wait for a
 * helper (nice 19, CPU 0) to finish 0.3 ms of work, and an ordinary thread of the same process
 * keeps CPU 0 busy. Nobody holds a lock meanwhile.
 */
#include "shape.h"
#include <sys/resource.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static uint64_t wanted, finished;
static bool is_done;

/* Time in which a thread was ready and without a CPU. */
static void count_queued(uint64_t before)
{
	shared->lost_ns[1] += queued_ns() - before;
}

static void be_nice(int value)
{
	if (setpriority(PRIO_PROCESS, (id_t)gettid(), value))
		die("setpriority");
}

static void encode(int id)
{
	uint64_t before = queued_ns();

	pin_to_cpu(0);
	while (going())
		compute_ms(1);
	count_queued(before);
}

static void help(int id)
{
	uint64_t before = queued_ns();

	pin_to_cpu(0);
	be_nice(19);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (finished == wanted && !is_done)
			pthread_cond_wait(&asked, &lock);
		if (finished == wanted)
			break;
		pthread_mutex_unlock(&lock);
		compute_ms(0.3);
		pthread_mutex_lock(&lock);
		finished++;
		pthread_cond_broadcast(&answered);
	}
	pthread_mutex_unlock(&lock);
	count_queued(before);
}

static void control(int id)
{
	pin_to_cpu(1);
	be_nice(-10);
	while (going()) {
		struct wait wait = wait_begins();

		pthread_mutex_lock(&lock);
		uint64_t mine = ++wanted;
		pthread_cond_signal(&asked);
		while (finished < mine)
			pthread_cond_wait(&answered, &lock);
		pthread_mutex_unlock(&lock);
		wait_ends(wait, 0);
		sleep_ms(2);
	}
	pthread_mutex_lock(&lock);
	is_done = true;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("encoder", 1, encode);
	start_threads("helper", 1, help);
	start_threads("control", 1, control);
	run_for(seconds);
	join_crew();
	return TRUTH({ "priority-inversion,cpu-runqueue,peer", "encoder-", "cpu" },
		     { "cpu-runqueue,priority-inversion", "encoder-", "cpu" });
}
