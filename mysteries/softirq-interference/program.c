/*
 * A thread has a CPU to itself, the first, and computes. On another CPU a neighbour sends a
 * burst of small datagrams to itself each millisecond, over the loopback of a network namespace of
 * its own.
 *
 * Faulty: packets are steered (RPS, `rps_cpus`) to the first CPU, so that one spends its time in
 * receiving for somebody else, in softirqs between the thread's instructions. Fixed (-DFIXED):
 * they are steered to the CPU that sends.
 *
 * Needs root and two CPUs. All that is set up is in the neighbour's own namespaces and goes with it.
 */
#include "../common.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#define VICTIM_CPU 0
#define SENDER_CPU 1
#define PORT 7777
#define PERIOD_NS MILLISECOND
/* A burst is 14 sends of 100 datagrams each, which the receiving side has to take apart. */
#define BURST 14
#define DATAGRAMS 100
#define BYTES 64
#define STEP_NS 200
#define GAP_NS MICROSECOND /* a step that took longer was interrupted */

#ifdef FIXED
#define STEER_TO SENDER_CPU
#else
#define STEER_TO VICTIM_CPU
#endif

static uint64_t step_rounds;
static _Atomic uint64_t gaps;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("cannot run on CPU %d (two CPUs are needed)", cpu);
}

/* A network namespace whose loopback is up and hands its packets to CPU `cpu`. */
static void own_network(int cpu)
{
	int fd = -1;
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	char mask[16];

	if (unshare(CLONE_NEWNET | CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL))
		die("cannot have namespaces of my own (root is needed)");
	fd = open("/sys/class/net/lo/queues/rx-0/rps_cpus", O_WRONLY | O_CLOEXEC);
	snprintf(mask, sizeof mask, "%x", 1U << cpu);
	if (fd < 0 || write(fd, mask, strlen(mask)) < 0)
		die("cannot steer packets: this kernel has no RPS");
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		die("cannot bring the loopback up");
	close(fd);
}

static void neighbour(void *unused)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static char payload[DATAGRAMS * BYTES];
	int receiver, sender, size = BYTES;

	(void)unused;
	own_network(STEER_TO);
	pin(SENDER_CPU);
	receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (receiver < 0 || sender < 0 || bind(receiver, (struct sockaddr *)&to, sizeof to) ||
	    connect(sender, (struct sockaddr *)&to, sizeof to) ||
	    setsockopt(sender, SOL_UDP, UDP_SEGMENT, &size, sizeof size))
		die("cannot send to myself");
	/* Nobody reads: what finds no room is thrown away, after all the work of receiving it. */
	for (uint64_t next = now_ns();; next += PERIOD_NS) {
		sleep_until(next);
		for (int i = 0; i < BURST; i++)
			if (send(sender, payload, sizeof payload, 0) < 0)
				die("cannot send to myself");
	}
}

/*
 * Short steps of computing, each with a look at the clock. What a step took beyond its ordinary
 * length is time in which the CPU did something else for a while. What the kernel counts as waiting
 * for the CPU is taken out: another thread had it then.
 */
static void work(int id, struct account *mine)
{
	uint64_t x = (uint64_t)id, last, waited;

	pin(VICTIM_CPU);
	waited = runq_ns();
	for (last = now_ns(); running(); mine->ops++) {
		uint64_t now, took;

		x = compute(x, step_rounds);
		now = now_ns();
		took = now - last;
		last = now;
		if (took > GAP_NS) {
			count_loss(mine, took - STEP_NS);
			gaps++;
		}
	}
	waited = runq_ns() - waited;
	mine->lost_ns -= waited < mine->lost_ns ? waited : mine->lost_ns;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t sender;

	step_rounds = rounds_for(STEP_NS);
	sender = start_process("neighbour", neighbour, NULL);
	sum = run_workers(1, "worker", work, seconds);
	end_process(sender);

	printf("%.0f steps/s\n", (double)sum.ops * 1e9 / (double)sum.wall_ns);
	printf("%llu gaps in the worker's time, %.1f us on average, %.2f ms at worst: %.0f %% of its time\n",
	       (unsigned long long)gaps, (double)sum.lost_ns / (double)(gaps ? gaps : 1) / 1e3,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " gaps=%llu", (unsigned long long)gaps);
	return 0;
}
