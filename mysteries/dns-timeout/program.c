/*
 * Four threads look a name up before each piece of work, with the C library's own resolver. The
 * program has a network and an /etc/resolv.conf of its own (namespaces, gone with it), so that
 * nothing of the host is asked or changed.
 *
 * Faulty: there is a socket on the name server's port, and nobody who reads it; each look-up ends
 * by the resolver's timeout. Fixed (-DFIXED): the name server answers.
 *
 * lost_ns: how long look-ups took beyond 1 ms.
 */
#include "../loopback.h"
#include "../measure.h"
#include <arpa/nameser.h>
#include <net/if.h>
#include <resolv.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#define CLIENTS 4
#define ORDINARY MILLISECOND
#define FOLDER "/mnt"
/* Without the options it would be two tries of 5 s. */
#define SETTINGS "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"

static int name_server;

/* A network with nothing but a loopback device, and a file system where mounts are our own. */
static void leave_host(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("cannot have namespaces of its own (it needs root)");
	if (mount("none", FOLDER, "tmpfs", 0, "size=64k"))
		die("cannot mount on " FOLDER);
	fd = open(FOLDER "/resolv.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, SETTINGS, sizeof SETTINGS - 1) < 0 ||
	    mount(FOLDER "/resolv.conf", "/etc/resolv.conf", NULL, MS_BIND, NULL))
		die("cannot put its own /etc/resolv.conf in place");
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		die("cannot start its loopback device");
	close(fd);
}

static void start_name_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(53),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	name_server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (name_server < 0 || bind(name_server, (struct sockaddr *)&address, sizeof address))
		die("cannot bind a socket to port 53");
	receive_timeout(name_server, 50);
}

#ifdef FIXED
/* Answers each question with the address 192.0.2.1. */
static void answer(void)
{
	static const unsigned char record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
	unsigned char packet[512 + sizeof record];
	struct sockaddr_in from;
	socklen_t length = sizeof from;
	ssize_t n = recvfrom(name_server, packet, 512, 0, (struct sockaddr *)&from, &length);
	HEADER *header = (HEADER *)packet;

	if (n < (ssize_t)sizeof *header)
		return;
	header->qr = header->ra = 1;
	header->ancount = htons(1);
	memcpy(packet + n, record, sizeof record);
	sendto(name_server, packet, (size_t)n + sizeof record, 0, (struct sockaddr *)&from, length);
}
#endif

static void look_up(struct account *mine)
{
	unsigned char packet[512];

	while (running()) {
		uint64_t began = now_ns();
		int found = res_query("orders.example.com", C_IN, T_A, packet, sizeof packet);

		count_loss(mine, above(now_ns() - began, ORDINARY));
		mine->ops += found > 0;
		sleep_until(now_ns() + 2 * MILLISECOND);
	}
}

static void work(int id, struct account *mine)
{
	if (id < CLIENTS)
		look_up(mine);
#ifdef FIXED
	while (id == CLIENTS && running())
		answer();
#endif
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	leave_host();
	start_name_server();
	sum = run_workers(CLIENTS + 1, "resolve", work, seconds);
	print_truth(&sum, "%s", "");
	return 0;
}
