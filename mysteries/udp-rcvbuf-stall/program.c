/*
 * A market-data receiver: a sender publishes datagrams with sequence numbers, 20 each millisecond;
 * the receiver counts the gaps. Once a second, on the wall clock, a snapshot of the book is taken
 * into fresh memory.
 *
 * Faulty: the receiving thread itself gets that memory from the kernel, 256 MiB that are cleared
 * page by page, and its socket has the buffer that the kernel gives by default, which is full
 * before the call returns. Fixed (-DFIXED): another thread takes the snapshots, and the buffer
 * holds what comes in a second, for stalls that remain.
 *
 * lost_ns: the calls that got the memory, in the thread that receives.
 */
#include "../loopback.h"
#include <sys/mman.h>

#define SNAPSHOT (256UL << 20)
#define BURST 20
#define SIZE 256
#define BUFFER (8 << 20) /* a second of the feed */

static struct sockaddr_in address;
static int receiver;
static _Atomic uint64_t lost_datagrams;

static void take_snapshot(struct account *mine)
{
	uint64_t began = now_ns();
	void *memory = mmap(NULL, SNAPSHOT, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory for a snapshot");
	if (mine)
		count_loss(mine, now_ns() - began);
	munmap(memory, SNAPSHOT);
}

static uint64_t wall_second(void)
{
	return clock_ns(CLOCK_REALTIME) / SECOND;
}

static void receive(struct account *mine)
{
	uint64_t expected = 0, second = wall_second();
	uint64_t datagram[SIZE / 8];

	while (running()) {
		if (recv(receiver, datagram, sizeof datagram, 0) == sizeof datagram) {
			if (datagram[0] > expected)
				lost_datagrams += datagram[0] - expected;
			expected = datagram[0] + 1;
			mine->ops++;
		}
#ifndef FIXED
		if (wall_second() != second) {
			second = wall_second();
			take_snapshot(mine);
		}
#else
		(void)second;
#endif
	}
}

static void publish(void)
{
	uint64_t datagram[SIZE / 8] = { 0 }, next = now_ns();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (running()) {
		for (int i = 0; i < BURST; i++, datagram[0]++)
			sendto(fd, datagram, sizeof datagram, 0, (struct sockaddr *)&address,
			       sizeof address);
		next += MILLISECOND;
		sleep_until(next);
	}
	close(fd);
}

#ifdef FIXED
static void snapshots(void)
{
	while (running()) {
		uint64_t now = clock_ns(CLOCK_REALTIME);
		uint64_t rest = SECOND - now % SECOND;

		/* In small steps, to see the end. */
		sleep_until(now_ns() + (rest < 50 * MILLISECOND ? rest : 50 * MILLISECOND));
		if (rest <= 50 * MILLISECOND)
			take_snapshot(NULL);
	}
}
#endif

static void work(int id, struct account *mine)
{
	if (id == 0)
		receive(mine);
	else if (id == 1)
		publish();
#ifdef FIXED
	else
		snapshots();
#endif
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	receiver = bound_socket(SOCK_DGRAM, &address);
	receive_timeout(receiver, 50);
#ifdef FIXED
	if (setsockopt(receiver, SOL_SOCKET, SO_RCVBUFFORCE, &(int){ BUFFER }, sizeof(int)))
		setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &(int){ BUFFER }, sizeof(int));
	sum = run_workers(3, "feed", work, seconds);
#else
	sum = run_workers(2, "feed", work, seconds);
#endif
	print_truth(&sum, " dropped=%llu", (unsigned long long)lost_datagrams);
	return 0;
}
