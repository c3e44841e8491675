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
#include "../interrupted-steps.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#define PORT 7777
#define PERIOD_NS MILLISECOND
/* A burst is 14 sends of 100 datagrams each, which the receiving side has to take apart. */
#define BURST 14
#define DATAGRAMS 100
#define BYTES 64

#ifdef FIXED
#define STEER_TO NEIGHBOUR_CPU
#else
#define STEER_TO VICTIM_CPU
#endif

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
	pin(NEIGHBOUR_CPU);
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

int main(int argc, char **argv)
{
	return compute_beside("neighbour", neighbour, argc, argv);
}
