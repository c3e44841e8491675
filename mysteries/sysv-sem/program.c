/*
 * Jobs that share nothing, each a process of its own, need a few semaphores for every item of
 * their work and give them back after it.
 *
 * Faulty: a System V semaphore set, semget and semctl(IPC_RMID). All sets of an IPC namespace are
 * in one table with one lock, which is held while a set is made and cleared, so jobs that know
 * nothing of each other wait for each other. Fixed (-DFIXED): unnamed POSIX semaphores in shared
 * memory, which are no kernel object at all.
 */
#include "../processes.h"
#include <semaphore.h>
#include <sys/sem.h>

#define JOBS 2
#define SEMAPHORES 250
#define WORK_NS 300
#define CALIBRATION_NS (400 * MILLISECOND)

static sem_t (*posix_sets)[SEMAPHORES]; /* one for each job, seen by its helpers */
static int job;
static uint64_t work_rounds;
static uint64_t ordinary_ns; /* making and removing the semaphores while no other job does */

/* Nothing that the kernel or another job knows of. */
static void use_posix(void)
{
	sem_t *set = posix_sets[job];

	for (int i = 0; i < SEMAPHORES; i++)
		sem_init(&set[i], 1, 1);
	for (int i = 0; i < SEMAPHORES; i++)
		sem_destroy(&set[i]);
}

#ifndef FIXED
static void use_system_v(void)
{
	int set = semget(IPC_PRIVATE, SEMAPHORES, 0600);

	if (set < 0 || semctl(set, 0, IPC_RMID))
		die("cannot have %d semaphores", SEMAPHORES);
}
#endif

/* One item; returns what its semaphores took. */
static uint64_t do_item(uint64_t item)
{
	uint64_t began = now_ns(), took;

#ifdef FIXED
	use_posix();
#else
	use_system_v();
#endif
	took = now_ns() - began;
	compute(item, work_rounds);
	return took;
}

static void neighbour(void *unused)
{
	(void)unused;
	job = 1;
	for (;;)
		use_posix();
}

/*
 * The mean of one job alone in the table. The other CPU is as busy as it will be, because two
 * CPUs may be two halves of one core.
 */
static uint64_t ordinary_item(void)
{
	pid_t other = start_process("neighbour", neighbour, NULL);
	uint64_t until = now_ns() + CALIBRATION_NS, took = 0, items = 0;

	for (; now_ns() < until; items++)
		took += do_item(items);
	end_process(other);
	return took / items;
}

static void do_job(int id, struct account *mine)
{
	uint64_t took_ns = 0;

	job = id;
	for (; crew_running(); mine->ops++) {
		uint64_t took = do_item(mine->ops), lost = above(took, ordinary_ns);

		took_ns += took;
		if (lost > mine->max_ns)
			mine->max_ns = lost;
	}
	mine->lost_ns = above(took_ns, mine->ops * ordinary_ns);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	double uses;

	work_rounds = rounds_for(WORK_NS);
	posix_sets = shared_memory(JOBS * sizeof *posix_sets);
	ordinary_ns = ordinary_item();
	create_crew();
	sum = run_crew(JOBS, "job", do_job, seconds);

	uses = (double)(sum.ops ? sum.ops : 1);
	printf("%llu sets of %d semaphores; making and removing one takes %.2f us, alone %.2f us\n",
	       (unsigned long long)sum.ops, SEMAPHORES,
	       (double)(sum.lost_ns + sum.ops * ordinary_ns) / uses / 1e3, (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
