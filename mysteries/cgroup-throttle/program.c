/*
 * Two threads answer a request every 10 ms each, 2 ms of computing: 40 % of one CPU in all. The
 * process is in a cgroup with a CPU quota, as a container is.
 *
 * Faulty: the quota is 20 ms of each 100 ms, half of what is needed; when it is used up both
 * threads are off the CPU until the next period, with CPUs idle. Fixed (-DFIXED): 80 ms of 100.
 *
 * The cgroup is this program's own. A child, the janitor, removes it when we have left it, or
 * when we died in it.
 */
#include "../common.h"
#include <sys/stat.h>

#define THREADS 2
#define PERIOD_NS (10 * MILLISECOND)
#define WORK_NS (2 * MILLISECOND)
#define QUOTA_PERIOD_US 100000
#ifdef FIXED
#define QUOTA_US 80000
#else
#define QUOTA_US 20000
#endif

static char home[256];  /* the cgroup that we came from */
static char group[300]; /* our own */
static bool v2;
static uint64_t work_rounds;
static _Atomic uint64_t missed;

static bool write_to(const char *directory, const char *name, const char *text)
{
	char path[400];
	int fd;
	bool done;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

/* True if `list`, "cpu,cpuacct", has `name`. */
static bool has(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL) {
		if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
			return true;
	}
	return false;
}

/* Our path in the hierarchy with `controller`; the one of cgroup v2 has "". */
static bool own_path(const char *controller, char *path, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re"); /* lines like 1:cpu,cpuacct:/a/b */
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof line, file)) {
		char *list = strchr(line, ':');
		char *where = list ? strchr(list + 1, ':') : NULL;

		if (!where)
			continue;
		*where = '\0';
		where[1 + strcspn(where + 1, "\n")] = '\0';
		found = has(list + 1, controller);
		if (found)
			snprintf(path, size, "%s", where + 1);
	}
	if (file)
		fclose(file);
	return found;
}

/* Finds the hierarchy with the cpu controller, where we are in it, and where to make our own. */
static void find_home(void)
{
	static const char *const places[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct" };
	char path[128];

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!access(places[i], X_OK) && own_path("cpu", path, sizeof path)) {
			snprintf(home, sizeof home, "%s%s", places[i], path);
			snprintf(group, sizeof group, "%s/whylag-mystery-%d", home, getpid());
			return;
		}
	}
	/* A v2 cgroup with processes has no children with controllers, except for the root. */
	v2 = true;
	if (!own_path("", path, sizeof path))
		die("there are no cgroups here");
	snprintf(home, sizeof home, "/sys/fs/cgroup%s", path);
	snprintf(group, sizeof group, "/sys/fs/cgroup/whylag-mystery-%d", getpid());
}

static void set_quota(void)
{
	char text[64];
	bool done;

	if (v2) {
		snprintf(text, sizeof text, "%d %d", QUOTA_US, QUOTA_PERIOD_US);
		done = write_to(group, "cpu.max", text);
	} else {
		snprintf(text, sizeof text, "%d", QUOTA_PERIOD_US);
		done = write_to(group, "cpu.cfs_period_us", text);
		snprintf(text, sizeof text, "%d", QUOTA_US);
		done = done && write_to(group, "cpu.cfs_quota_us", text);
	}
	if (!done) {
		int error = errno;

		rmdir(group);
		errno = error;
		die("cannot set a CPU quota in %s", group);
	}
}

/* Outlives us, however we end, by as long as it takes to remove the cgroup. */
static pid_t start_janitor(int *ours)
{
	int ends[2];
	pid_t pid;
	char none;

	if (pipe2(ends, O_CLOEXEC))
		die("cannot make a pipe");
	pid = fork();
	if (pid < 0)
		die("cannot fork the janitor");
	if (pid) {
		close(ends[0]);
		*ours = ends[1];
		return pid;
	}
	prctl(PR_SET_NAME, "janitor");
	setsid();
	close(ends[1]);
	while (read(ends[0], &none, 1) < 0)
		;
	/* A cgroup is busy until the last thread in it is gone. */
	for (int tries = 0; rmdir(group) && errno == EBUSY && tries < 500; tries++)
		sleep_until(now_ns() + 10 * MILLISECOND);
	_exit(0);
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;

	prctl(PR_SET_TIMERSLACK, 1); /* else 50 us of lateness are nobody's fault */
	for (; running(); next += PERIOD_NS) {
		uint64_t due, woke, ran, stretch;

		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		due = now_ns(); /* a request that was begun too late is not counted twice */
		if (due < next)
			due = next;
		sleep_until(next);
		woke = now_ns();
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		compute((uint64_t)id, work_rounds);
		ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		stretch = now_ns() - woke;
		stretch = stretch > ran ? stretch - ran : 0;
		count_loss(mine, woke - due + stretch);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t janitor;
	int alive;

	work_rounds = rounds_for(WORK_NS);
	find_home();
	if (mkdir(group, 0755))
		die("cannot make the cgroup %s", group);
	set_quota();
	janitor = start_janitor(&alive);
	if (!write_to(group, "cgroup.procs", "0"))
		die("cannot enter the cgroup %s", group);

	sum = run_workers(THREADS, "request", answer_requests, seconds);

	write_to(home, "cgroup.procs", "0");
	close(alive);
	waitpid(janitor, NULL, 0);

	printf("%llu requests of %g ms answered, %llu missed, with %d of %d ms allowed\n",
	       (unsigned long long)sum.ops, WORK_NS / 1e6, (unsigned long long)missed,
	       QUOTA_US / 1000, QUOTA_PERIOD_US / 1000);
	printf("the threads lost %.0f %% of their time, %.0f ms at worst\n",
	       share(sum.lost_ns, sum.wall_ns), (double)sum.max_ns / 1e6);
	print_truth(&sum, " missed=%llu", (unsigned long long)missed);
	return 0;
}
