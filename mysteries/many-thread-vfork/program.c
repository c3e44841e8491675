/*
 * A server of five thousand threads, one per connection, nearly all of which wait for their
 * client. After every request it runs a hook program, if there is one; there is none.
 *
 * Faulty: the thread that answers requests tries to start the hook itself. posix_spawn makes a
 * child that borrows our address space (vfork); when it finds no program it exits, and for its
 * accounting record the kernel walks all mappings of that address space, two for each thread.
 * Fixed (-DFIXED): a helper process, made before the threads, tries instead and reports.
 */
#include "../idle_threads.h"
#include "../measure.h"
#include <spawn.h>
#include <sys/socket.h>

#define CONNECTIONS 5000
#define REQUEST_NS (100 * MICROSECOND)
#define COMPARE_EVERY 8
#define HOOK "/nonexistent/after-request"

static uint64_t request_rounds;
static uint64_t asking_ns;   /* getting the helper to try, and back */
static uint64_t ordinary_ns; /* trying to start the hook in a process without threads */

/* Returns why the hook could not be started. */
static int start_hook(void)
{
	char *const arguments[] = { HOOK, NULL };
	pid_t pid;
	int error = posix_spawn(&pid, HOOK, NULL, NULL, arguments, NULL);

	if (!error)
		waitpid(pid, NULL, 0);
	return error;
}

struct attempt {
	int error;
	uint64_t took_ns;
};

static struct attempt attempt(void)
{
	uint64_t began = now_ns();
	int error = start_hook();

	if (error != ENOENT) {
		errno = error;
		die("starting %s", HOOK);
	}
	return (struct attempt){ error, now_ns() - began };
}

static int to_helper, from_main; /* the two ends of one socket */

static void helper(void *unused)
{
	char byte;

	(void)unused;
	while (read(from_main, &byte, 1) == 1) {
		struct attempt mine = attempt();

		if (write(from_main, &mine, sizeof mine) != sizeof mine)
			return;
	}
}

static pid_t start_helper(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		die("cannot create a socket pair");
	to_helper = ends[0];
	from_main = ends[1];
	return start_process("spawn-helper", helper, NULL);
}

/* The helper's attempt, and how long it took there. */
static struct attempt attempt_by_helper(void)
{
	struct attempt its;

	if (write(to_helper, "", 1) != 1 || read(to_helper, &its, sizeof its) != sizeof its)
		die("the spawn helper is gone");
	return its;
}

/*
 * Answers a request and returns how long the attempt to start the hook took after it, in the
 * process that made it; asking the helper is a price of its own, see asking_ns.
 */
static uint64_t answer(uint64_t request)
{
	compute(request, request_rounds);
#ifdef FIXED
	uint64_t began = now_ns(), took_ns = attempt_by_helper().took_ns;

	asking_ns += above(now_ns() - began, took_ns);
	return took_ns;
#else
	return attempt().took_ns;
#endif
}

/* The helper has no threads: what its attempts take is the ordinary price, here and now. */
static void answer_requests(int id, struct account *mine)
{
	uint64_t took_ns = 0, helper_ns = 0, compared = 0;

	(void)id;
	for (; running(); mine->ops++) {
		uint64_t took = answer(mine->ops);

		took_ns += took;
		if (took > mine->max_ns)
			mine->max_ns = took;
		if (mine->ops % COMPARE_EVERY == 0) {
			helper_ns += attempt_by_helper().took_ns;
			compared++;
		}
	}
	ordinary_ns = compared ? helper_ns / compared : 0;
	mine->lost_ns = above(took_ns, mine->ops * ordinary_ns);
	mine->max_ns = above(mine->max_ns, ordinary_ns);
}

/* The end of a child is a signal to the process and would wake one of the idle threads. */
static void leave_signals_pending(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	double attempts;

	leave_signals_pending();
	request_rounds = rounds_for(REQUEST_NS);
	pid_t spawner = start_helper();
	start_idle_threads(CONNECTIONS);
	sum = run_workers(1, "request", answer_requests, seconds);
	end_idle_threads();
	end_process(spawner);

	attempts = (double)(sum.ops ? sum.ops : 1);
	printf("%llu requests; the attempt to start the hook takes %.0f us, for a process without threads %.0f us\n",
	       (unsigned long long)sum.ops,
	       ((double)sum.lost_ns / attempts + (double)ordinary_ns) / 1e3, (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu asking_ns=%llu", (unsigned long long)ordinary_ns,
		    (unsigned long long)asking_ns);
	return 0;
}
