/* Three front threads hand each request to a back thread of their own by eventfd, and wait on
 * another for its answer; the back threads sleep for 6 ms, as for a rate limit of a service. */
#include "shape.h"
#include <sys/eventfd.h>

#define PAIRS 3

static int request[PAIRS], answer[PAIRS];

static void signal_by(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof one) != sizeof one)
		die("eventfd");
}

static void wait_on(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof count) != sizeof count)
		die("eventfd");
}

static void back(int id)
{
	for (;;) {
		wait_on(request[id]);
		/* Its front may wait already. */
		if (!going()) {
			signal_by(answer[id]);
			break;
		}
		sleep_ms(6);
		signal_by(answer[id]);
	}
}

static void front(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		signal_by(request[id]);
		wait_on(answer[id]);
		wait_ends(wait, 0);
		sleep_ms(2);
	}
	signal_by(request[id]);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	for (int i = 0; i < PAIRS; i++) {
		request[i] = eventfd(0, EFD_CLOEXEC);
		answer[i] = eventfd(0, EFD_CLOEXEC);
	}
	start_threads("back", PAIRS, back);
	until_workers_wait();
	start_threads("front", PAIRS, front);
	run_for(seconds);
	join_crew();
	return TRUTH({ "peer,timer", "back-", "sleep" });
}
