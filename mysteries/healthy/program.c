/*
 * Nothing is wrong here. One thread computes all the time; two wake every 10 ms and compute a
 * little; one hands every second tick to a thread that waits in epoll; all count their work under
 * one mutex that is held for nanoseconds. whylag must not find a cause.
 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define TICKERS 2
#define PERIOD_NS (10 * MILLISECOND)
#define WORK_NS (200 * MICROSECOND)

static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t tally;
static uint64_t work_rounds;
static int message_fd;

/* Counts one piece of work under the mutex; waiting for it would be the only loss we know. */
static void count_work(struct account *mine)
{
	uint64_t began = now_ns();

	pthread_mutex_lock(&tally_lock);
	count_loss(mine, now_ns() - began);
	tally++;
	pthread_mutex_unlock(&tally_lock);
	mine->ops++;
}

static void compute_alone(int id, struct account *mine)
{
	(void)id;
	while (running()) {
		compute(mine->ops, work_rounds * 10);
		count_work(mine);
	}
}

static void tick(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / TICKERS;

	for (; running(); next += PERIOD_NS) {
		sleep_until(next);
		compute(mine->ops, work_rounds);
		count_work(mine);
		if (id == 0 && mine->ops % 2 == 0 && eventfd_write(message_fd, 1))
			die("cannot send a message");
	}
}

static void receive(int id, struct account *mine)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	eventfd_t messages;

	(void)id;
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, message_fd, &event))
		die("cannot wait for messages");
	while (running()) {
		if (epoll_wait(epoll, &event, 1, 100) == 1 && !eventfd_read(message_fd, &messages))
			count_work(mine);
	}
	close(epoll);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct worker computer, receiver;
	struct account sum;

	message_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (message_fd < 0)
		die("cannot make an eventfd");
	work_rounds = rounds_for(WORK_NS);
	start_workers(&computer, 1, "compute", compute_alone);
	start_workers(&receiver, 1, "receive", receive);
	sum = run_workers(TICKERS, "tick", tick, seconds);
	join_workers(&computer, 1, &sum);
	join_workers(&receiver, 1, &sum);
	close(message_fd);

	printf("%llu pieces of work, %.1f us of waiting for the mutex in all\n",
	       (unsigned long long)tally, (double)sum.lost_ns / 1e3);
	print_truth(&sum, "%s", "");
	return 0;
}
