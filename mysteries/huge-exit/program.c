/*
 * A server holds a table of 1 GB and starts a process for each connection, so that a bad request
 * can spoil one of them only. A connection takes 10 ms.
 *
 * Faulty: the process that served it exits, and before its parent sees that, the kernel goes
 * through all that it had mapped: a quarter of a million pages that it inherited with the fork.
 * Fixed (-DFIXED): one process serves all connections, one after the other.
 */
#include "../processes.h"
#include "../pages.h"

#define TABLE_BYTES (1024 * MEGABYTE)
#define CONNECTION_NS (10 * MILLISECOND)
#define CALIBRATION 100

static uint8_t *table;
static uint64_t connection_rounds;
static uint64_t ordinary_ns; /* the end of a process before the table was there */
static struct life {
	uint64_t began_ns, last_words_ns;
} *life; /* in memory that all processes see */

static void serve(uint64_t connection)
{
	uint64_t value = table ? table[connection * 40503 % TABLE_BYTES] : 0;

	compute(value, connection_rounds);
}

static void serve_one(void *connection)
{
	life->began_ns = now_ns();
	serve((uint64_t)(uintptr_t)connection);
	life->last_words_ns = now_ns();
}

/* From the last words of the process that served the connection until we hear of its end. */
__attribute__((unused)) static uint64_t serve_in_process(uint64_t connection)
{
	pid_t pid = start_process("connection", serve_one, (void *)(uintptr_t)connection);

	waitpid(pid, NULL, 0);
	return now_ns() - life->last_words_ns;
}

static void accept_connections(int id, struct account *mine)
{
	(void)id;
	for (; running(); mine->ops++) {
#ifdef FIXED
		serve(mine->ops);
#else
		count_loss(mine, above(serve_in_process(mine->ops), ordinary_ns));
#endif
	}
}

static uint64_t ordinary_end(void)
{
	static uint64_t took[CALIBRATION];
	uint64_t rounds = connection_rounds;

	connection_rounds = 1;
	for (int i = 0; i < CALIBRATION; i++)
		took[i] = serve_in_process((uint64_t)i);
	connection_rounds = rounds;
	return median(took, CALIBRATION);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	only_small_pages();
	connection_rounds = rounds_for(CONNECTION_NS);
	life = shared_memory(sizeof *life);
	ordinary_ns = ordinary_end();
	table = fresh_memory(TABLE_BYTES, MAP_POPULATE);
	sum = run_workers(1, "accept", accept_connections, seconds);
	munmap(table, TABLE_BYTES);

	printf("%llu connections; from the last words of one to its end %.2f ms on average (with no table: %.2f ms)\n",
	       (unsigned long long)sum.ops,
	       ((double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) + (double)ordinary_ns) / 1e6,
	       (double)ordinary_ns / 1e6);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
