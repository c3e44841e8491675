/*
 * A process answers requests, each from one of four thousand tables in memory that it shares with
 * others: map the table, read it, unmap it. Next to it a broker hands out shared memory, two
 * thousand times a second, and asks each time how much is in use already.
 *
 * Faulty: the tables are System V segments. shmat and shmdt need the lock of the list of all
 * segments, which the broker's shmctl(SHM_INFO) holds while it adds up every one of them.
 * Fixed (-DFIXED): the tables are parts of a memory file (memfd_create; shm_open is the same) and
 * are mapped by mmap. The segments are there, and are added up, as before.
 */
#include "../processes.h"
#include <sys/shm.h>

#define CLIENTS 1
#define TABLES 4000
#define TABLE_BYTES 4096
#define BROKER_PERIOD_NS (500 * MICROSECOND)
#define REPLY_NS (20 * MICROSECOND)
#define CALIBRATION 10000

static int *segments; /* ids; in memory that all processes see */
static int memory;    /* descriptor of the memory file */
static uint64_t reply_rounds;
static uint64_t ordinary_ns; /* mapping and unmapping a table before there was a broker */

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

/* Asks before every allocation whether there is room. */
static void broker(void *unused)
{
	(void)unused;
	for (uint64_t next = now_ns();; next += BROKER_PERIOD_NS) {
		struct shm_info info;

		sleep_until(next);
		if (shmctl(0, SHM_INFO, (struct shmid_ds *)&info) < 0)
			die("cannot ask for the shared memory in use");
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
	uint64_t took_ns = 0;

	(void)id;
	for (; crew_running(); mine->ops++) {
		uint64_t took = answer(mine->ops), lost = above(took, ordinary_ns);

		took_ns += took;
		if (lost > mine->max_ns)
			mine->max_ns = lost;
	}
	mine->lost_ns = above(took_ns, mine->ops * ordinary_ns);
}

/* The mean, interrupts and all. */
static uint64_t ordinary_answer(void)
{
	uint64_t took = 0;

	for (uint64_t i = 0; i < CALIBRATION; i++)
		took += answer(i);
	return took / CALIBRATION;
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t owner, broker_pid;
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
	broker_pid = start_process("broker", broker, NULL);
	sum = run_crew(CLIENTS, "client", answer_requests, seconds);
	end_process(broker_pid);
	end_process(owner);

	printf("%llu requests, each from one of %d tables\n", (unsigned long long)sum.ops, TABLES);
	printf("mapping and unmapping takes %.1f us on average, %.1f ms at worst (without the broker: %.1f us)\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3 + (double)ordinary_ns / 1e3,
	       (double)sum.max_ns / 1e6, (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
