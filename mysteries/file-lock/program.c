/*
 * Eight threads deliver messages into one mailbox, each with the file open for itself: every
 * 2 ms a message comes in, is put into its final form (0.35 ms of computing) and is appended.
 * The mailbox is guarded by flock(2), as other programs write to it, too.
 *
 * Faulty: the message is formed while the file is locked, so 8 x 0.35 ms must pass through one
 * lock every 2 ms, which cannot be done; CPUs stay idle meanwhile. Fixed (-DFIXED): the file is
 * locked for the appending alone.
 */
#include "../common.h"
#include <sys/file.h>

#define THREADS 8
#define PERIOD_NS (2 * MILLISECOND)
#define FORM_NS (350 * MICROSECOND)
#define MESSAGES 1024 /* the mailbox is a ring of so many, that it does not grow */

static int mailbox_fd;
static uint64_t form_rounds;
static uint64_t uncontended_ns; /* what flock takes when nobody else has the file locked */
static _Atomic uint64_t missed;

static int open_mailbox(void)
{
	char path[64];
	int fd;

	/* flock belongs to the open file: a duplicate would share it */
	snprintf(path, sizeof path, "/proc/self/fd/%d", mailbox_fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		die("cannot open the mailbox a second time");
	return fd;
}

/* Nanoseconds that a thread has been runnable without a CPU, from its open schedstat. */
static uint64_t queued_ns(int schedstat)
{
	char text[96];
	ssize_t length = pread(schedstat, text, sizeof text - 1, 0);
	unsigned long long ran, queued;

	text[length > 0 ? length : 0] = '\0';
	return sscanf(text, "%llu %llu", &ran, &queued) == 2 ? queued : 0;
}

/* Locks the mailbox and returns how long that took. */
static uint64_t lock_mailbox(int fd)
{
	uint64_t began = now_ns();

	while (flock(fd, LOCK_EX)) {
		if (errno != EINTR)
			die("cannot lock the mailbox");
	}
	return now_ns() - began;
}

static void append(int fd, uint64_t number, uint64_t message)
{
	uint64_t entry[16];

	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++)
		entry[i] = message;
	if (pwrite(fd, entry, sizeof entry, (off_t)(number % MESSAGES * sizeof entry)) !=
	    (ssize_t)sizeof entry)
		die("cannot write to the mailbox");
}

/* Returns what the wait for the lock cost, without the wait for a CPU after it, which is not the
 * lock's fault. */
static uint64_t deliver(int fd, int schedstat, int id, uint64_t number)
{
	uint64_t message, waited, queued, ordinary = uncontended_ns;

#ifdef FIXED
	message = compute(number, form_rounds);
#endif
	queued = queued_ns(schedstat);
	waited = lock_mailbox(fd);
	ordinary += queued_ns(schedstat) - queued;
#ifndef FIXED
	message = compute(number, form_rounds);
#endif
	append(fd, number * THREADS + (uint64_t)id, message);
	if (flock(fd, LOCK_UN))
		die("cannot unlock the mailbox");
	return waited > ordinary ? waited - ordinary : 0;
}

static void take_messages(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;
	int fd = open_mailbox();
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	if (schedstat < 0)
		die("cannot open /proc/thread-self/schedstat");
	for (; running(); next += PERIOD_NS) {
		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		sleep_until(next);
		count_loss(mine, deliver(fd, schedstat, id, mine->ops));
		mine->ops++;
	}
	close(schedstat);
	close(fd);
}

/* The least of 51 locks taken by one thread alone. */
static uint64_t measure_uncontended(void)
{
	int fd = open_mailbox();
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 51; i++) {
		uint64_t one = lock_mailbox(fd);

		if (flock(fd, LOCK_UN))
			die("cannot unlock the mailbox");
		if (one < least)
			least = one;
	}
	close(fd);
	return least;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	uint64_t began;

	mailbox_fd = nameless_file("/tmp");
	form_rounds = rounds_for(FORM_NS);
	uncontended_ns = measure_uncontended();
	began = now_ns();
	sum = run_workers(THREADS, "deliver", take_messages, seconds);
	close(mailbox_fd);

	printf("%.0f messages/s delivered, %llu missed\n",
	       (double)sum.ops / ((double)(now_ns() - began) / 1e9), (unsigned long long)missed);
	printf("a message waits %.0f us for the mailbox on average (alone: %.1f us), %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3,
	       (double)uncontended_ns / 1e3, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " missed=%llu uncontended_ns=%llu", (unsigned long long)missed,
		    (unsigned long long)uncontended_ns);
	return 0;
}
