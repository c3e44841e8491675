/*
 * A gateway has thousands of UDP sockets on one port, each on an address of its own, and opens
 * another one for each session. Next to it an agent looks at the host now and then.
 *
 * Faulty: the agent reads /proc/net/udp. All sockets of a port are in one chain of the kernel's
 * table. Each read of 4 KiB walks through the chain from its begin to where the last one ended,
 * and holds the lock of the chain; bind and close of a socket of this port spin for it. Fixed
 * (-DFIXED): the agent reads /proc/net/sockstat, which has how many there are.
 */
#include "../loopback.h"
#include "../measure.h"
#include "../own_cpu.h"
#include "../processes.h"
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#define PORT 5353
#define HOLDERS 2
#define SOCKETS 10000 /* of each holder: the limit of descriptors is 20,000 in places */
#define WORK_NS (50 * MICROSECOND)
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 500
#define PRICES (1 << 16)

#ifdef FIXED
#define TABLE "/proc/net/sockstat"
#else
#define TABLE "/proc/net/udp"
#endif

static struct shared {
	atomic_bool reading;
	atomic_uint ready;
	atomic_ulong reads, read_ns;
} *shared;
static uint64_t work_rounds, ordinary_ns;

/* A network of our own, with loopback only: our port is free, and nobody else's tables grow. */
static void own_network(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	if (unshare(CLONE_NEWNET))
		die("cannot have a network namespace (needs root)");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		die("cannot bring loopback up");
	close(fd);
}

/* A socket on the port and the `number`th address of 127.0.0.0/8; -1 if it cannot be had. */
static int open_session(uint32_t number)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT),
				       .sin_addr.s_addr = htonl((127U << 24) + 1 + number) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void hold(void *first)
{
	for (uint32_t i = 0; i < SOCKETS; i++)
		if (open_session((uint32_t)(uintptr_t)first + i) < 0)
			die("cannot open %d sockets", SOCKETS);
	shared->ready++;
	for (;;)
		pause();
}

static void look_at_host(void *unused)
{
	static char buffer[1 << 16];
	uint64_t random = 88172645463325252ULL;

	uint64_t took = 0;

	(void)unused;
	for (;;) {
		uint64_t began, pause_ns;
		int fd;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		pause_ns = MILLISECOND * (PAUSE_MIN_MS + random % (PAUSE_MAX_MS - PAUSE_MIN_MS));
		/* On a slow machine it would read most of the time, and nothing could be distinguished from chance. */
		if (pause_ns < took)
			pause_ns = took + random % took;
		sleep_until(now_ns() + pause_ns);
		began = now_ns();
		shared->reading = true;
		fd = open(TABLE, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("cannot read " TABLE);
		while (read(fd, buffer, sizeof buffer) > 0)
			;
		close(fd);
		shared->reading = false;
		shared->reads++;
		took = now_ns() - began;
		shared->read_ns += took;
	}
}

/*
 * A thread that waits for a spinlock is on its CPU, so its CPU clock shows the loss and contains no
 * waiting for a CPU. The ordinary price is that of sessions while nobody reads.
 */
static void serve(int id, struct account *mine)
{
	static uint64_t alone[PRICES];
	uint64_t took, during_ns = 0, during = 0, longest = 0;
	size_t prices = 0;

	move_to_own_cpu();
	for (; running(); mine->ops++) {
		bool reading = shared->reading;
		uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int fd = open_session(HOLDERS * SOCKETS + (uint32_t)(mine->ops % SOCKETS));

		if (fd < 0)
			die("cannot open a session");
		close(fd);
		took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		if (reading || shared->reading) {
			during_ns += took;
			during++;
			if (took > longest)
				longest = took;
		} else if (prices < PRICES) {
			alone[prices++] = took;
		}
		compute(mine->ops + (uint64_t)id, work_rounds);
	}
	ordinary_ns = prices ? median(alone, prices) : 0;
	mine->lost_ns = above(during_ns, during * ordinary_ns);
	mine->max_ns = above(longest, ordinary_ns);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct rlimit files;
	struct account sum;
	pid_t helpers[HOLDERS + 1];

	divide_cpus();
	own_network();
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	shared = shared_memory(sizeof *shared);
	work_rounds = rounds_for(WORK_NS);
	for (uint32_t i = 0; i < HOLDERS; i++)
		helpers[i] = start_process("holder", hold, (void *)(uintptr_t)(i * SOCKETS));
	for (uint64_t end = now_ns() + 20 * SECOND; shared->ready < HOLDERS;) {
		if (now_ns() > end || waitpid(-1, NULL, WNOHANG) > 0)
			die("%d sockets cannot be had here", HOLDERS * SOCKETS);
		sleep_until(now_ns() + MILLISECOND);
	}
	helpers[HOLDERS] = start_process("agent", look_at_host, NULL);
	sum = run_workers(1, "gateway", serve, seconds);
	for (int i = 0; i <= HOLDERS; i++)
		end_process(helpers[i]);
	printf("%llu sessions with %d sockets, ordinarily %.1f us each; %lu reads of " TABLE
	       " of %.1f ms\n", (unsigned long long)sum.ops, HOLDERS * SOCKETS,
	       (double)ordinary_ns / 1e3, shared->reads,
	       shared->reads ? (double)shared->read_ns / (double)shared->reads / 1e6 : 0);
	print_truth(&sum, " ordinary_ns=%llu reads=%lu", (unsigned long long)ordinary_ns,
		    shared->reads);
	return 0;
}
