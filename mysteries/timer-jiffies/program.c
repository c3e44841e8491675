/*
 * A session over UDP with a peer that has gone silent: after its recorded distance from the last
 * one a packet is due, sent again if the peer did not answer by then.
 *
 * Faulty: the wait is a receive timeout (SO_RCVTIMEO), which the kernel keeps in ticks of its
 * clock, 4 ms with HZ=250: rounded up, and from the next tick on. Fixed (-DFIXED): ppoll() waits
 * for the answer; its timeout is a high-resolution timer.
 */
#include "../ticks.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static int silent_socket(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&loopback, sizeof loopback))
		die("cannot make a socket");
	return fd;
}

/* Waits for an answer, which does not come, for `gap_ns`. */
static void receive_within(int fd, uint64_t gap_ns)
{
	char answer[64];
#ifdef FIXED
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	struct timespec timeout = { .tv_nsec = (long)gap_ns };

	if (ppoll(&readable, 1, &timeout, NULL) == 1)
		recv(fd, answer, sizeof answer, 0);
#else
	struct timeval timeout = { .tv_usec = (long)(gap_ns / MICROSECOND) };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout))
		die("cannot set a receive timeout");
	recv(fd, answer, sizeof answer, 0);
#endif
}

static void resend(int id, struct account *mine)
{
	int fd = silent_socket();

	(void)id;
	prctl(PR_SET_TIMERSLACK, 1); /* else 50 us of lateness are nobody's fault */
	for (uint64_t i = 0; running(); i++) {
		uint64_t gap_ns = recorded_gap_ns(i), due = now_ns() + gap_ns;

		receive_within(fd, gap_ns);
		tell_tick(mine, due, now_ns());
	}
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum = run_timers("resend", resend, seconds);

	printf("%llu packets sent again, late by %.0f us on average, %.0f us at most\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / 1e3 / (double)sum.ops,
	       (double)sum.max_ns / 1e3);
	print_truth(&sum, "%s", "");
	return 0;
}
