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
#define SLOTS 20 /* one for each job to be alone in, the others for all */
#define SLOT_NS (10 * MILLISECOND)

static sem_t (*posix_sets)[SEMAPHORES]; /* one for each job, seen by its helpers */
static int job;
static uint64_t work_rounds;
static uint64_t *ordinary_ns; /* of each job: an item's semaphores while no other job uses the table */

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

/* The job that has the table for itself just now, or JOBS if they all use it. */
static int alone(uint64_t now)
{
	uint64_t slot = now / SLOT_NS % SLOTS;

	return slot % (SLOTS / JOBS) ? JOBS : (int)(slot / (SLOTS / JOBS));
}

/* What a job did in slots of one kind. */
struct kind {
	uint64_t items;
	uint64_t took_ns;
	uint64_t queued_ns; /* of it: runnable without a CPU */
};

static uint64_t took_without_queue(const struct kind *kind)
{
	return above(kind->took_ns, kind->queued_ns);
}

/*
 * The ordinary price is measured ten times a second, while the other job uses its own memory
 * instead: so it has the same machine, caches and memory management around it. Waiting for a CPU
 * is taken out: ksoftirqd, which frees the memory of removed sets, runs when it likes.
 */
static void do_job(int id, struct account *mine)
{
	struct kind ours = { 0 }, others = { 0 }, shared = { 0 };
	struct kind *kinds[JOBS + 1], *now_in = NULL;
	uint64_t queued = runq_ns(), took;

	job = id;
	for (int i = 0; i <= JOBS; i++)
		kinds[i] = i == id ? &ours : i == JOBS ? &shared : &others;
	while (crew_running()) {
		struct kind *kind = kinds[alone(now_ns())];

		if (kind != now_in) {
			uint64_t before = queued;

			queued = runq_ns();
			if (now_in)
				now_in->queued_ns += queued - before;
			now_in = kind;
		}
		if (kind == &others) {
			use_posix();
			continue;
		}
		took = do_item(mine->ops);
		kind->took_ns += took;
		kind->items++;
		if (kind == &shared && took > mine->max_ns)
			mine->max_ns = took;
	}
	mine->ops = shared.items;
	ordinary_ns[id] = ours.items ? took_without_queue(&ours) / ours.items : 0;
	mine->lost_ns = above(took_without_queue(&shared), shared.items * ordinary_ns[id]);
	mine->max_ns = above(mine->max_ns, ordinary_ns[id]);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	uint64_t ordinary;
	double uses;

	work_rounds = rounds_for(WORK_NS);
	posix_sets = shared_memory(JOBS * sizeof *posix_sets);
	ordinary_ns = shared_memory(JOBS * sizeof *ordinary_ns);
	create_crew();
	sum = run_crew(JOBS, "job", do_job, seconds);

	ordinary = (ordinary_ns[0] + ordinary_ns[1]) / JOBS;
	uses = (double)(sum.ops ? sum.ops : 1);
	printf("%llu sets of %d semaphores; making and removing one takes %.2f us, alone %.2f us\n",
	       (unsigned long long)sum.ops, SEMAPHORES,
	       (double)sum.lost_ns / uses / 1e3 + (double)ordinary / 1e3, (double)ordinary / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary);
	return 0;
}
