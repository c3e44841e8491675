/*
 * A cache holds a table of 1 GB, answers a request every 2 ms, and asks a small program about the
 * weather twenty times a second.
 *
 * Faulty: it starts the program by fork and exec. fork copies the page tables of the whole table,
 * a quarter of a million entries, only for exec to throw them away; the thread answers nobody
 * meanwhile. Fixed (-DFIXED): posix_spawn, whose child borrows the memory until it runs its program.
 *
 * lost_ns: what it takes to start the program, beyond what it took before the table was there.
 */
#include "../processes.h"
#include "../pages.h"
#include <spawn.h>

#define TABLE_BYTES (1024 * MEGABYTE)
#define REQUEST_NS (2 * MILLISECOND)
#define WORK_NS (100 * MICROSECOND)
#define START_EVERY 25 /* requests */
#define CALIBRATION 20

extern char **environ;

static uint8_t *table;
static uint64_t work_rounds, ordinary_ns;
static _Atomic uint64_t starts;

/* Nobody waits for its end: the kernel takes it away (SIGCHLD is ignored). */
static uint64_t start_program(void)
{
	char *argv[] = { "true", NULL };
	uint64_t began = now_ns();
	pid_t pid;

#ifdef FIXED
	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ))
		die("cannot start a program");
#else
	pid = fork();
	if (pid < 0)
		die("cannot fork");
	if (!pid) {
		execvp("true", argv);
		_exit(127);
	}
#endif
	return now_ns() - began;
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t next = now_ns();

	(void)id;
	for (; running(); mine->ops++) {
		next += REQUEST_NS;
		sleep_until(next);
		compute(table[mine->ops * 40503 % TABLE_BYTES], work_rounds);
		if (mine->ops % START_EVERY)
			continue;
		count_loss(mine, above(start_program(), ordinary_ns));
		starts++;
	}
}

static uint64_t ordinary_start(void)
{
	static uint64_t took[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = start_program();
	return median(took, CALIBRATION);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	only_small_pages();
	signal(SIGCHLD, SIG_IGN);
	work_rounds = rounds_for(WORK_NS);
	ordinary_ns = ordinary_start();
	table = fresh_memory(TABLE_BYTES, MAP_POPULATE);
	sum = run_workers(1, "cache", answer_requests, seconds);
	munmap(table, TABLE_BYTES);

	printf("%llu requests, %llu programs started: %.2f ms each beyond the ordinary %.2f ms, %.1f ms at worst\n",
	       (unsigned long long)sum.ops, (unsigned long long)starts,
	       (double)sum.lost_ns / (double)(starts ? starts : 1) / 1e6, (double)ordinary_ns / 1e6,
	       (double)sum.max_ns / 1e6);
	print_truth(&sum, " starts=%llu", (unsigned long long)starts);
	return 0;
}
