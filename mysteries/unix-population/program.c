/*
 * A service gives each session a socket with an abstract AF_UNIX name, and closes it with the
 * session. Other instances of it, in the same network namespace, hold 40,000 such sockets.
 *
 * Faulty: theirs have names, too, and bind() has to compare with all those that are in the same
 * one of 256 lists. Fixed (-DFIXED): theirs have no names. The namespace is the program's own.
 *
 * lost_ns: how long bind() took beyond what it took before there were others (the median).
 */
#include "../measure.h"
#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define OTHERS 40000
#define SPARE 64
#define TRIES 2000

struct other {
	int instance, sessions;
};

static uint64_t ordinary;
static int ready[2];

/* A socket; how long it took to give it a name is added to `took_ns`. */
static int session(int instance, int number, uint64_t *took_ns)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "service-%d/session-%d",
			      instance, number);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t began = now_ns();

	if (fd < 0 || bind(fd, (struct sockaddr *)&name,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length))
		die("cannot open a session");
	*took_ns = now_ns() - began;
	return fd;
}

/* Another instance of the service, with sessions that last. */
static void hold(void *argument)
{
	const struct other *other = argument;
	uint64_t took = 0;

	for (int i = 0; i < other->sessions; i++) {
#ifdef FIXED
		if (socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0)
			die("cannot open a socket");
#else
		session(other->instance, i, &took);
#endif
	}
	(void)took;
	if (write(ready[1], "", 1) == 1)
		pause();
}

static void serve(int id, struct account *mine)
{
	(void)id;
	for (int number = 0; running(); number++) {
		uint64_t took;
		int fd = session(0, number, &took);

		count_loss(mine, above(took, ordinary));
		mine->ops++;
		close(fd);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	static uint64_t before[TRIES];
	pid_t others[MAX_WORKERS];
	int count = 0, left = OTHERS;
	struct rlimit files;
	struct account sum;
	char byte;

	if (unshare(CLONE_NEWNET))
		die("cannot have a network namespace of its own (it needs root)");
	for (int i = 0; i < TRIES; i++)
		close(session(0, i, &before[i]));
	ordinary = median(before, TRIES);

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (pipe2(ready, O_CLOEXEC))
		die("cannot make a pipe");
	while (left > 0 && count < MAX_WORKERS) {
		rlim_t most = files.rlim_cur - SPARE;
		struct other other = { .sessions = most < (rlim_t)left ? (int)most : left };

		other.instance = count + 1;
		others[count++] = start_process("service", hold, &other);
		if (read(ready[0], &byte, 1) != 1)
			die("another instance has ended");
		left -= other.sessions;
	}
	sum = run_workers(1, "session", serve, seconds);
	for (int i = 0; i < count; i++)
		end_process(others[i]);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary);
	return 0;
}
