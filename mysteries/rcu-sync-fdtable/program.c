/*
 * A service gives each session a table of descriptors of its own. A session has two threads: one
 * opens the 900 descriptors that the session needs, uses them and closes them again, the other
 * waits for orders meanwhile.
 *
 * Faulty: the table begins small and is replaced by a larger one at 64, 256 and 512 descriptors.
 * As two threads use it, the kernel waits for an RCU grace period before each change. Fixed
 * (-DFIXED): the session's highest descriptor is opened first, while it has one thread only: the
 * table gets its full size once, and there is nobody to wait for.
 */
#include "../common.h"
#include <sched.h>
#include <sys/resource.h>

#define SESSIONS 2 /* at a time */
#define DESCRIPTORS 900
#define HIGHEST 1000
#define PERIOD_NS (10 * MILLISECOND) /* from session to session, if it is done by then */

static _Atomic uint64_t waits;

static void *await_orders(void *order)
{
	char one;

	while (read(*(int *)order, &one, 1) > 0)
		;
	return NULL;
}

/* Opens the descriptors. dup() takes the lowest free number: a table is full exactly when the
 * number it returns is a power of two, and what those calls take beyond the others is the loss. */
static void open_descriptors(struct account *mine)
{
	uint64_t ordinary_ns = 0, ordinary = 0, growing_ns = 0, growing = 0;

	for (int i = 0; i < DESCRIPTORS; i++) {
		uint64_t began = now_ns(), took;
		int fd = dup(STDOUT_FILENO);

		took = now_ns() - began;
		if (fd < 0)
			die("cannot open descriptor number %d", i);
		if (fd >= 64 && !(fd & (fd - 1))) {
			growing_ns += took;
			growing++;
			if (took > mine->max_ns)
				mine->max_ns = took;
		} else {
			ordinary_ns += took;
			ordinary++;
		}
	}
	ordinary_ns = growing * (ordinary_ns / ordinary);
	mine->lost_ns += growing_ns > ordinary_ns ? growing_ns - ordinary_ns : 0;
	waits += growing;
}

static void *session(void *account)
{
	pthread_t reader;
	int order[2];

	if (unshare(CLONE_FILES))
		die("cannot have a descriptor table of my own");
	if (pipe(order))
		die("cannot make a pipe");
#ifdef FIXED
	if (dup2(STDOUT_FILENO, HIGHEST) < 0)
		die("cannot open descriptor number %d", HIGHEST);
#endif
	errno = pthread_create(&reader, NULL, await_orders, &order[0]);
	if (errno)
		die("cannot start a reader");
	open_descriptors(account);
	close(order[1]);
	pthread_join(reader, NULL);
	return NULL; /* the table goes with its last thread */
}

static void serve_sessions(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / SESSIONS;

	for (; running(); mine->ops++, next += PERIOD_NS) {
		pthread_t thread;

		if (next < now_ns())
			next = now_ns(); /* late: no catching up */
		sleep_until(next);
		errno = pthread_create(&thread, NULL, session, mine);
		if (errno)
			die("cannot start a session");
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct rlimit limit;
	struct account sum;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_cur <= HIGHEST || setrlimit(RLIMIT_NOFILE, &limit))
		die("needs %d descriptors (ulimit -n)", HIGHEST + 1);
	sum = run_workers(SESSIONS, "session", serve_sessions, seconds);

	printf("%llu sessions of %d descriptors\n", (unsigned long long)sum.ops, DESCRIPTORS);
	printf("a call of dup that finds the table full takes %.1f ms, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(waits ? waits : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " growths=%llu", (unsigned long long)waits);
	return 0;
}
