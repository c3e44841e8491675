/*
 * An event loop that paces packets: each is due at its recorded distance from the one before, in
 * microseconds.
 *
 * Faulty: until then the loop waits in epoll_wait(), whose timeout is in whole milliseconds, and
 * rounds it up so as never to be early. Fixed (-DFIXED): epoll_pwait2() takes nanoseconds.
 */
#include "../ticks.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* Waits for events, which do not come, for `gap_ns`. */
static void wait_for_events(int epoll, uint64_t gap_ns)
{
	struct epoll_event event;
#ifdef FIXED
	struct timespec timeout = { .tv_nsec = (long)gap_ns };

	if (epoll_pwait2(epoll, &event, 1, &timeout, NULL) < 0 && errno != EINTR)
		die("cannot wait for events");
#else
	int timeout_ms = (int)((gap_ns + MILLISECOND - 1) / MILLISECOND);

	if (epoll_wait(epoll, &event, 1, timeout_ms) < 0 && errno != EINTR)
		die("cannot wait for events");
#endif
}

static void pace(int id, struct account *mine)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), orders = eventfd(0, EFD_CLOEXEC);

	(void)id;
	if (epoll < 0 || orders < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, orders, &event))
		die("cannot wait for events");
	prctl(PR_SET_TIMERSLACK, 1); /* else 50 us of lateness are nobody's fault */
	for (uint64_t i = 0; running(); i++) {
		uint64_t gap_ns = recorded_gap_ns(i), due = now_ns() + gap_ns;

		wait_for_events(epoll, gap_ns);
		tell_tick(mine, due, now_ns());
	}
	close(orders);
	close(epoll);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum = run_timers("pace", pace, seconds);

	printf("%llu packets, late by %.0f us on average, %.0f us at most\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / 1e3 / (double)sum.ops,
	       (double)sum.max_ns / 1e3);
	print_truth(&sum, "%s", "");
	return 0;
}
