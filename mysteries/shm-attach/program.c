/*
 * A process answers requests, each from one of four thousand tables in memory that it shares
 * with others: map the table, read it, unmap it. Beside it an agent lists, fifty times a second,
 * what shared memory there is.
 *
 * Faulty: the tables are System V segments. shmat and shmdt need the lock of the list of all
 * segments, which is held for reading whenever /proc/sysvipc/shm is read. Fixed (-DFIXED):
 * the tables are parts of a memory file (memfd_create; shm_open is the same) and are mapped by
 * mmap; the segments are there, and are listed, as before.
 */
#include "../processes.h"
#include <sys/shm.h>

#define CLIENTS 1
#define TABLES 4000
#define TABLE_BYTES 4096
#define AGENT_PERIOD_NS (20 * MILLISECOND)
#define REPLY_NS (20 * MICROSECOND)
#define CALIBRATION 2000

static int *segments; /* ids; in memory that all processes see */
static int memory;    /* descriptor of the memory file */
static uint64_t reply_rounds;
static uint64_t ordinary_ns; /* mapping and unmapping a table before there was an agent */

/*
 * Owns the tables. A segment that is removed at once stays for as long as it is attached
 * somewhere, that is, for as long as this process lives.
 */
static void keeper(void *ready)
{
	for (int i = 0; i < TABLES; i++) {
		int segment = shmget(IPC_PRIVATE, TABLE_BYTES, 0600);
		uint8_t *table;

		if (segment < 0)
			die("cannot have %d segments of shared memory, only %d", TABLES, i);
		table = shmat(segment, NULL, 0);
		shmctl(segment, IPC_RMID, NULL);
		if (table == (void *)-1)
			die("cannot attach segment %d of %d", i, TABLES);
		*table = 1;
		segments[i] = segment;
	}
	if (write(*(int *)ready, "", 1) != 1)
		die("cannot report");
	for (;;)
		pause();
}

/* As `ipcs -m` does. */
static void agent(void *unused)
{
	static char rows[64 << 10];

	(void)unused;
	for (uint64_t next = now_ns();; next += AGENT_PERIOD_NS) {
		int list;

		sleep_until(next);
		list = open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC);
		if (list < 0)
			die("cannot read /proc/sysvipc/shm");
		while (read(list, rows, sizeof rows) > 0)
			;
		close(list);
	}
}

static const volatile uint8_t *map_table(int i)
{
#ifdef FIXED
	void *table = mmap(NULL, TABLE_BYTES, PROT_READ, MAP_SHARED, memory, (off_t)i * TABLE_BYTES);
#else
	void *table = shmat(segments[i], NULL, SHM_RDONLY);
#endif
	if (table == (void *)-1)
		die("cannot map table %d", i);
	return table;
}

static void unmap_table(const volatile uint8_t *table)
{
#ifdef FIXED
	munmap((void *)table, TABLE_BYTES);
#else
	shmdt((void *)table);
#endif
}

/* Returns how long mapping and unmapping took. */
static uint64_t answer(uint64_t request)
{
	uint64_t began = now_ns(), mapped, read;
	const volatile uint8_t *table = map_table((int)(request * 2654435761U % TABLES));

	mapped = now_ns();
	compute(*table, reply_rounds);
	read = now_ns();
	unmap_table(table);
	return mapped - began + now_ns() - read;
}

static void answer_requests(int id, struct account *mine)
{
	(void)id;
	for (; crew_running(); mine->ops++)
		count_loss(mine, above(answer(mine->ops), ordinary_ns));
}

static uint64_t ordinary_answer(void)
{
	static uint64_t took[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = answer((uint64_t)i);
	return median(took, CALIBRATION);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t owner, watcher;
	struct account sum;
	int ready[2];
	char byte;

	reply_rounds = rounds_for(REPLY_NS);
	create_crew();
	segments = shared_memory(TABLES * sizeof *segments);
	memory = memfd_create("tables", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, TABLES * TABLE_BYTES) || pipe2(ready, O_CLOEXEC))
		die("cannot have a memory file and a pipe");
	owner = start_process("keeper", keeper, &ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 1; /* the keeper has said why */

	ordinary_ns = ordinary_answer();
	watcher = start_process("shm-agent", agent, NULL);
	sum = run_crew(CLIENTS, "client", answer_requests, seconds);
	end_process(watcher);
	end_process(owner);

	printf("%llu requests, each from one of %d tables\n", (unsigned long long)sum.ops, TABLES);
	printf("mapping and unmapping takes %.1f us on average, %.1f ms at worst (without the agent: %.1f us)\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3 + (double)ordinary_ns / 1e3,
	       (double)sum.max_ns / 1e6, (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
