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
#define CALIBRATION 400
#define ATTEMPTS_MAX 10000000
#define HOOK "/nonexistent/after-request"

static uint64_t request_rounds;
static uint64_t ordinary_ns; /* trying to start the hook before there were threads */

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

#ifdef FIXED
static int to_helper, from_main; /* the two ends of one socket */

static void helper(void *unused)
{
	char byte;
	int error;

	(void)unused;
	while (read(from_main, &byte, 1) == 1) {
		error = start_hook();
		if (write(from_main, &error, sizeof error) != sizeof error)
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

static int run_hook(void)
{
	int error;

	if (write(to_helper, "", 1) != 1 || read(to_helper, &error, sizeof error) != sizeof error)
		die("the spawn helper is gone");
	return error;
}
#else
static int run_hook(void)
{
	return start_hook();
}
#endif

/* Returns how long the attempt took. */
static uint64_t after_request(void)
{
	uint64_t began = now_ns();
	int error = run_hook();

	if (error != ENOENT) {
		errno = error;
		die("starting %s", HOOK);
	}
	return now_ns() - began;
}

static uint64_t ordinary_attempt(void)
{
	static uint64_t took[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = after_request();
	return median(took, CALIBRATION);
}

/*
 * The walk takes the same time in each attempt. So the loss is the median's, times the attempts:
 * thousands of short-lived processes also wait for CPUs, which is no part of the fault.
 */
static void answer_requests(int id, struct account *mine)
{
	static uint64_t took[ATTEMPTS_MAX];

	(void)id;
	for (; running() && mine->ops < ATTEMPTS_MAX; mine->ops++) {
		compute(mine->ops, request_rounds);
		took[mine->ops] = after_request();
		if (above(took[mine->ops], ordinary_ns) > mine->max_ns)
			mine->max_ns = above(took[mine->ops], ordinary_ns);
	}
	mine->lost_ns = mine->ops * above(median(took, mine->ops), ordinary_ns);
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
#ifdef FIXED
	pid_t spawner = start_helper();
#endif
	ordinary_ns = ordinary_attempt();
	start_idle_threads(CONNECTIONS);
	sum = run_workers(1, "request", answer_requests, seconds);
	end_idle_threads();
#ifdef FIXED
	end_process(spawner);
#endif

	attempts = (double)(sum.ops ? sum.ops : 1);
	printf("%llu requests; the attempt to start the hook takes %.0f us, before the threads %.0f us\n",
	       (unsigned long long)sum.ops,
	       ((double)sum.lost_ns / attempts + (double)ordinary_ns) / 1e3, (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
