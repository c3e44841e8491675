/*
 * Sixteen threads wait for orders, each in an epoll of its own that watches the one queue (a
 * counting eventfd: a read takes one order, or fails with EAGAIN). 8,000 orders a second arrive,
 * each is 20 us of work.
 *
 * Faulty: every order wakes all threads that wait; one gets it. Most of the others do not even
 * come out of epoll_wait: it looks once more, finds nothing and sleeps again. Fixed (-DFIXED): the
 * queue is watched with EPOLLEXCLUSIVE, and an order wakes one thread.
 */
#include "../common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define THREADS 16
#define PERIOD_NS (125 * MICROSECOND)
#define WORK_NS (20 * MICROSECOND)

#ifdef FIXED
#define WATCH (EPOLLIN | EPOLLEXCLUSIVE)
#else
#define WATCH EPOLLIN
#endif

static int queue;
static uint64_t work_rounds;
static _Atomic uint64_t wakeups, useless, refused, posted;

static void post_one(void)
{
	uint64_t one = 1;

	if (write(queue, &one, sizeof one) != sizeof one)
		die("cannot post an order");
}

static void *post(void *unused)
{
	pthread_setname_np(pthread_self(), "orders");
	for (uint64_t next = now_ns(); running(); next += PERIOD_NS) {
		sleep_until(next);
		post_one();
		posted++;
	}
	post_one(); /* wakes one, which wakes the next */
	return unused;
}

/* How often this thread went to sleep so far, and so was woken: the kernel's own count. */
static uint64_t sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

/*
 * What a thread did apart from its orders is the price of being woken: its CPU time without the
 * orders' (its own clock), and its waiting for a CPU (the kernel's count). An order needs one
 * wakeup at most; the other wakeups' part of the price is the loss.
 */
static void serve(int id, struct account *mine)
{
	struct epoll_event event = { .events = WATCH };
	uint64_t x = (uint64_t)id, woken, worked = 0;
	uint64_t ran = clock_ns(CLOCK_THREAD_CPUTIME_ID), waited = runq_ns(), slept = sleeps();
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &event))
		die("cannot watch the queue");
	while (running()) {
		uint64_t order, began;

		if (epoll_wait(epoll, &event, 1, -1) < 1)
			continue;
		if (read(queue, &order, sizeof order) < 0) {
			refused++;
			continue;
		}
		began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		x = compute(x, work_rounds);
		worked += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		mine->ops++;
	}
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran - worked;
	waited = runq_ns() - waited;
	woken = sleeps() - slept;
	if (woken > mine->ops) {
		uint64_t for_nothing = woken - mine->ops;

		mine->lost_ns = (uint64_t)((double)(ran + waited) * (double)for_nothing / (double)woken);
		useless += for_nothing;
	}
	wakeups += woken;
	post_one();
	close(epoll);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pthread_t poster;
	struct account sum;

	queue = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	if (queue < 0)
		die("cannot make a queue");
	work_rounds = rounds_for(WORK_NS);
	errno = pthread_create(&poster, NULL, post, NULL);
	if (errno)
		die("cannot start the orders");
	sum = run_workers(THREADS, "server", serve, seconds);
	pthread_join(poster, NULL);

	printf("%llu orders, %llu served\n", (unsigned long long)posted, (unsigned long long)sum.ops);
	printf("%.1f wakeups an order, %.0f %% of them for nothing, which cost %.0f us an order: %.0f %% of the threads' time\n",
	       (double)wakeups / (double)(sum.ops ? sum.ops : 1), share(useless, wakeups),
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " wakeups=%llu useless=%llu refused=%llu", (unsigned long long)wakeups,
		    (unsigned long long)useless, (unsigned long long)refused);
	return 0;
}
