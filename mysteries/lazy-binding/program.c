/*
 * One thread, rx, receives a feed and publishes each message again through librate. A sender
 * gives 30 numbered datagrams each millisecond, and a snapshot of 400 at each full second; where
 * numbers are missing rx sends a NAK. Memory is short: twenty times a second the kernel is told to
 * reclaim (MADV_PAGEOUT, what reclaim does by itself under pressure) the pages that nobody needs:
 * the dynamic linker's and those of the library's tables, while others use the disk.
 *
 * The snapshot trips the rate limit, and the first send that is blocked calls sched_yield() for
 * the first time. Faulty: the call is bound then. Fixed (-DFIXED): the program starts itself with
 * LD_BIND_NOW=1, and it was bound before there was a feed.
 */
#include "feed.h"
#include "librate.h"
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define LONG_NS (100 * MICROSECOND)
#define RECLAIM_PERIOD_NS (50 * MILLISECOND)
#define QUEUE_BYTES (208 << 10) /* net.core.rmem_max where nobody changed it */

static int feed, output;
static struct sockaddr_in feed_address;
static uint64_t missing, naks_sent, stalls, major_faults, faults_before;
static struct rate limiter;

static uint64_t major_faults_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_majflt;
}

/* Publishes: if that takes long and reads the disk, all of its time is lost. */
static void publish(const struct message *message, struct account *mine)
{
	uint64_t began = now_ns(), took, faults;

	rate_publish(&limiter, message, sizeof *message);
	took = now_ns() - began;
	mine->ops++;
	if (took < LONG_NS)
		return;
	faults = major_faults_so_far() - faults_before;
	faults_before += faults;
	if (faults) {
		count_loss(mine, took);
		major_faults += faults;
		stalls++;
	}
}

/* Receives and publishes until the end. */
static void receive(int id, struct account *mine)
{
	struct sockaddr_in sender;
	struct message message;
	uint64_t expected = 0;

	(void)id;
	faults_before = major_faults_so_far();
	while (running()) {
		socklen_t length = sizeof sender;

		if (recvfrom(feed, &message, sizeof message, 0, (struct sockaddr *)&sender,
			     &length) != sizeof message)
			continue; /* nothing came for a while */
		if (message.number > expected) {
			missing += message.number - expected;
			naks_sent++;
			sendto(feed, &expected, sizeof expected, 0, (struct sockaddr *)&sender, length);
		}
		expected = message.number + 1;
		publish(&message, mine);
	}
}

struct piece {
	void *from;
	size_t bytes;
};
static struct piece pieces[16];
static int piece_count;

/* The linker, and of librate the piece with its tables. */
static int choose(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool is_linker = strstr(info->dlpi_name, "/ld-linux");

	(void)size;
	(void)arg;
	if (!is_linker && !strstr(info->dlpi_name, "librate"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + segment->p_vaddr) & ~4095UL;

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_W || piece_count == 16)
			continue;
		if (!is_linker && segment->p_offset)
			continue;
		pieces[piece_count++] = (struct piece){
			(void *)from, info->dlpi_addr + segment->p_vaddr + segment->p_memsz - from
		};
	}
	return 0;
}

static void reclaim(int id, struct account *mine)
{
	(void)id;
	for (uint64_t next = now_ns(); running(); next += RECLAIM_PERIOD_NS) {
		sleep_until(next);
		for (int i = 0; i < piece_count; i++)
			madvise(pieces[i].from, pieces[i].bytes, MADV_PAGEOUT);
		mine->ops++;
	}
}

/*
 * The helpers have a program of their own, with the system's linker: pages that several processes
 * have mapped are not reclaimed for one of them.
 */
static void run_helper(void *arg)
{
	char **words = arg;
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
	char *name = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;

	if (name)
		strcpy(name, "/lazy-binding-helper");
	execv(path, words);
	die("cannot start %s", path);
}

static pid_t start_helper(char *name, char *port, int fd)
{
	char number[16];
	char *words[] = { name, port, number, NULL };

	snprintf(number, sizeof number, "%d", fd);
	if (fcntl(fd, F_SETFD, 0))
		die("cannot hand over a file");
	return start_process(name, run_helper, words);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct timeval patience = { .tv_usec = 20000 };
	struct account sum, ignored = { 0 };
	struct sockaddr_in output_address;
	struct worker reclaimer;
	pid_t sender, reader;
	int busy_file, naks_file;
	_Atomic uint64_t *naks;
	char port[16];

#ifdef FIXED
	if (!getenv("LD_BIND_NOW")) {
		setenv("LD_BIND_NOW", "1", 1);
		execv("/proc/self/exe", argv);
		die("cannot start again with LD_BIND_NOW=1");
	}
#endif
	naks_file = memfd_create("naks", 0);
	naks = map_counter(naks_file);
	feed = bound_socket(&feed_address);
	setsockopt(feed, SOL_SOCKET, SO_RCVBUF, &(int){ QUEUE_BYTES }, sizeof(int));
	setsockopt(feed, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	output = bound_socket(&output_address);
	limiter.socket = output;
	/* Nobody reads what is published: it goes to the socket itself, whose queue is full soon. */
	if (connect(output, (struct sockaddr *)&output_address, sizeof output_address))
		die("cannot connect the output");
	/* Says that it is there: all that publishing needs is bound, but for what a block needs. */
	rate_publish(&limiter, &(struct message){ 0 }, sizeof(struct message));
	busy_file = nameless_file("/var/tmp");
	fill_file(busy_file, BUSY_FILE_BYTES);
	fsync(busy_file);
	dl_iterate_phdr(choose, NULL);
	if (piece_count < 3)
		die("the dynamic linker and librate were not found");

	reader = start_helper("disk-reader", "0", busy_file);
	start_workers(&reclaimer, 1, "reclaim", reclaim);
	usleep(20000);
	snprintf(port, sizeof port, "%d", ntohs(feed_address.sin_port));
	sender = start_helper("sender", port, naks_file);
	sum = run_workers(1, "rx", receive, seconds);
	join_workers(&reclaimer, 1, &ignored);
	end_process(sender);
	end_process(reader);

	printf("%llu messages, %llu missing: %llu NAKs; the rate limit blocked %llu sends\n",
	       (unsigned long long)sum.ops, (unsigned long long)missing,
	       (unsigned long long)*naks, (unsigned long long)limiter.blocked);
	printf("%llu sends read the disk in %llu major faults, the longest took %.1f ms\n",
	       (unsigned long long)stalls, (unsigned long long)major_faults,
	       (double)sum.max_ns / 1e6);
	print_truth(&sum, " stalls=%llu naks=%llu missing=%llu blocked=%llu",
		    (unsigned long long)stalls, (unsigned long long)naks_sent,
		    (unsigned long long)missing, (unsigned long long)limiter.blocked);
	return 0;
}
