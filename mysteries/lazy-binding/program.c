/*
 * One thread, rx, receives a feed and publishes each message again through librate. A sender
 * gives 30 numbered datagrams each millisecond; where numbers are missing rx sends a NAK. At each
 * full second of the wall clock rx publishes a snapshot of 1,200 messages. Memory is short: twenty
 * times a second the kernel is asked to reclaim (MADV_PAGEOUT, what reclaim does by itself under
 * pressure) the pages that nobody needs: the dynamic linker's and those of the library's tables,
 * while others use the disk.
 *
 * The snapshot trips the rate limit, and the first send that is blocked calls sched_yield() for
 * the first time. Faulty: the call is bound then. Fixed (-DFIXED): the program starts itself with
 * LD_BIND_NOW=1, and it was bound before there was a feed.
 *
 * The process lives LIVES times in SECONDS: at the end of each life it executes itself.
 */
#include "feed.h"
#include "librate.h"
#include <link.h>
#include <sys/resource.h>

#define LONG_NS (100 * MICROSECOND)
#define RECLAIM_PERIOD_NS (50 * MILLISECOND)
#define SNAPSHOT 1200
#define QUEUE_BYTES (208 << 10) /* net.core.rmem_max where nobody changed it */
#define STATE "WHYLAG_MYSTERY_STATE" /* in the environment: descriptor of the shared file */

static struct state *state;
static int feed;
static uint64_t stalls, faults_before;
static struct rate limiter = { .limit = 500 };

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
		state->major_faults += faults;
		stalls++;
	}
}

static void take_message(struct account *mine)
{
	static uint64_t expected;
	struct sockaddr_in sender;
	struct message message;
	socklen_t length = sizeof sender;

	if (recvfrom(feed, &message, sizeof message, 0, (struct sockaddr *)&sender, &length) !=
	    sizeof message)
		return; /* nothing came for a while */
	if (expected && message.number > expected) {
		state->missing += message.number - expected;
		state->naks_sent++;
		sendto(feed, &expected, sizeof expected, 0, (struct sockaddr *)&sender, length);
	}
	expected = message.number + 1;
	publish(&message, mine);
}

static void receive(int id, struct account *mine)
{
	uint64_t second = clock_ns(CLOCK_REALTIME) / SECOND, now;

	(void)id;
	faults_before = major_faults_so_far();
	while (running()) {
		take_message(mine);
		now = clock_ns(CLOCK_REALTIME) / SECOND;
		for (int i = 0; now != second && i < SNAPSHOT; i++)
			publish(&(struct message){ 0 }, mine);
		second = now;
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

/* Leaves room for another name. */
static void own_path(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 32);

	if (length <= 0)
		die("cannot read /proc/self/exe");
	path[length] = 0;
}

static void live_again(char **argv)
{
	char path[4096];

	own_path(path, sizeof path);
	execv(path, argv);
	die("cannot start %s again", path);
}

/*
 * The helpers have a program of their own, with the system's linker: pages that several processes
 * have mapped are not reclaimed for one of them.
 */
static void run_helper(void *arg)
{
	char **words = arg;
	char path[4096];

	own_path(path, sizeof path);
	strcpy(strrchr(path, '/'), "/lazy-binding-helper");
	execv(path, words);
	die("cannot start %s", path);
}

static pid_t start_helper(char *name, int fd)
{
	char number[16];
	char *words[] = { name, number, NULL };

	snprintf(number, sizeof number, "%d", fd);
	if (fcntl(fd, F_SETFD, 0))
		die("cannot hand over a file");
	return start_process(name, run_helper, words);
}

/* Before the first life: the helpers, and what all lives share. */
static void start_all(void)
{
	int fd = memfd_create("state", 0);
	char number[16];

	if (fd < 0 || ftruncate(fd, sizeof(struct state)))
		die("cannot make a file to share");
	state = map_state(fd);
	state->busy_file = nameless_file("/var/tmp");
	fill_file(state->busy_file, BUSY_FILE_BYTES);
	fsync(state->busy_file);
	state->reader = start_helper("disk-reader", state->busy_file);
	state->sender = start_helper("sender", fd);
	snprintf(number, sizeof number, "%d", fd);
	setenv(STATE, number, 1);
#ifdef FIXED
	setenv("LD_BIND_NOW", "1", 1);
#endif
}

/* False if somebody asked it to end early. */
static bool live(double seconds)
{
	struct sockaddr_in feed_address;
	struct worker reclaimer;
	struct account sum, ignored = { 0 };

	state->life++;
	feed = bound_socket(SOCK_DGRAM, &feed_address);
	setsockopt(feed, SOL_SOCKET, SO_RCVBUF, &(int){ QUEUE_BYTES }, sizeof(int));
	receive_timeout(feed, 20);
	limiter.socket = published_socket();
	/* Says that it is there: all that publishing needs is bound, but for what a block needs. */
	rate_publish(&limiter, &(struct message){ 0 }, sizeof(struct message));
	dl_iterate_phdr(choose, NULL);
	if (piece_count < 3)
		die("the dynamic linker and librate were not found");

	start_workers(&reclaimer, 1, "reclaim", reclaim);
	state->port = ntohs(feed_address.sin_port);
	sum = run_workers(1, "rx", receive, seconds);
	state->port = 0;
	join_workers(&reclaimer, 1, &ignored);
	add_account(&state->sum, &sum);
	state->stalls += stalls;
	state->stalled_lives += stalls > 0;
	state->blocked += limiter.blocked;
	return sum.wall_ns >= (uint64_t)(seconds * 1e9) - 50 * MILLISECOND;
}

static void report(void)
{
	printf("%llu messages, %llu missing: %llu NAKs; the rate limit blocked %llu sends\n",
	       (unsigned long long)state->sum.ops, (unsigned long long)state->missing,
	       (unsigned long long)state->naks, (unsigned long long)state->blocked);
	printf("%llu sends read the disk in %llu major faults, in %llu of %d lives; the longest took "
	       "%.1f ms\n",
	       (unsigned long long)state->stalls, (unsigned long long)state->major_faults,
	       (unsigned long long)state->stalled_lives, state->life, (double)state->sum.max_ns / 1e6);
	print_truth(&state->sum, " stalls=%llu stalled_lives=%llu naks=%llu missing=%llu blocked=%llu",
		    (unsigned long long)state->stalls, (unsigned long long)state->stalled_lives,
		    (unsigned long long)state->naks_sent, (unsigned long long)state->missing,
		    (unsigned long long)state->blocked);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	int lives = (int)argument(argc, argv, 2, "LIVES", 1, 1000, 1);
	const char *known = getenv(STATE);

	if (!known) {
		start_all();
#ifdef FIXED
		live_again(argv);
#endif
	} else {
		state = map_state(atoi(known));
	}
	if (live(seconds / lives) && state->life < lives)
		live_again(argv);
	end_process(state->sender);
	end_process(state->reader);
	report();
	return 0;
}
