/*
 * Four threads handle a request every millisecond each and log four lines about it, down a pipe
 * to a logger process. The logger's log is tamper-evident and durable: it seals every line with
 * a slow hash chained to the line before (0.2 ms of computing), writes it and waits for the disk.
 * That cannot keep up with 16,000 lines a second.
 *
 * Faulty: the pipe fills and write() blocks the request threads until the logger has read some.
 * Fixed (-DFIXED): the writing end is O_NONBLOCK; the pipe is a queue of bounded length, and a
 * line that finds it full is dropped and counted.
 */
#include "../common.h"

#define THREADS 4
#define LINES 4
#define PERIOD_NS MILLISECOND
#define WORK_NS (50 * MICROSECOND)
#define SEAL_NS (200 * MICROSECOND)

static int pipe_read_fd, pipe_write_fd;
static uint64_t work_rounds, seal_rounds;
static _Atomic uint64_t dropped, missed;

static void logger(void *unused)
{
	int file = nameless_file("/var/tmp");
	FILE *in;
	uint64_t seal = 0;
	char line[512];

	(void)unused;
	close(pipe_write_fd);
	in = fdopen(pipe_read_fd, "r");
	if (!in)
		die("cannot read the pipe");
	while (fgets(line, sizeof line, in)) {
		size_t length = strlen(line);
		char sealed[600];

		for (size_t i = 0; i < length; i++)
			seal = (seal ^ (uint8_t)line[i]) * 1099511628211ULL;
		seal = compute(seal, seal_rounds);
		length = (size_t)snprintf(sealed, sizeof sealed, "%016llx %s",
					  (unsigned long long)seal, line);
		if (write(file, sealed, length) != (ssize_t)length || fdatasync(file))
			die("cannot write the log");
	}
}

/* Writes one line and returns how long that took. Lines are shorter than PIPE_BUF, so the
 * pipe takes a line whole or not at all. */
static uint64_t log_line(const char *line, size_t length)
{
	uint64_t began = now_ns();

	if (write(pipe_write_fd, line, length) < 0) {
		if (errno != EAGAIN)
			die("cannot write to the logger");
		dropped++;
	}
	return now_ns() - began;
}

static void handle_requests(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;

	for (; running(); next += PERIOD_NS) {
		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		sleep_until(next);
		compute((uint64_t)id, work_rounds);
		for (int i = 0; i < LINES; i++) {
			char line[256];
			int length = snprintf(line, sizeof line,
					      "%llu thread=%d request=%llu step=%d state=accepted "
					      "route=/orders/%08llx/confirm latency_class=interactive\n",
					      (unsigned long long)now_ns(), id,
					      (unsigned long long)mine->ops, i,
					      (unsigned long long)(mine->ops * 2654435761u % 0xffffffff));

			count_loss(mine, log_line(line, (size_t)length));
		}
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	uint64_t began;
	int ends[2];
	pid_t reader;

	work_rounds = rounds_for(WORK_NS);
	seal_rounds = rounds_for(SEAL_NS);
	if (pipe2(ends, O_CLOEXEC))
		die("cannot make a pipe");
	pipe_read_fd = ends[0];
	pipe_write_fd = ends[1];
	signal(SIGPIPE, SIG_IGN); /* should the logger die, write() says so */
	reader = start_process("slow-logger", logger, NULL);
	close(pipe_read_fd);
#ifdef FIXED
	if (fcntl(pipe_write_fd, F_SETFL, O_NONBLOCK))
		die("cannot make the pipe non-blocking");
#endif
	began = now_ns();
	sum = run_workers(THREADS, "request", handle_requests, seconds);
	end_process(reader);

	printf("%.0f requests/s handled, %llu missed, %llu log lines dropped\n",
	       (double)sum.ops / ((double)(now_ns() - began) / 1e9), (unsigned long long)missed,
	       (unsigned long long)dropped);
	printf("a request spends %.0f us in write() on average, %.1f ms in one at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " dropped=%llu missed=%llu", (unsigned long long)dropped,
		    (unsigned long long)missed);
	return 0;
}
