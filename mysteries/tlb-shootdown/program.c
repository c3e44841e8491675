/*
 * A service answers from a table of 64 pages that it keeps write-protected; for each update it makes
 * one page writable, enters the value, and protects it again. Next to the one thread that updates,
 * threads on all other CPUs evaluate requests.
 *
 * Faulty: they are threads of one process, so a CPU that runs one of them may remember the old
 * protection: each protection taken away means an interrupt to all of these CPUs and a wait until
 * the last has answered. Fixed (-DFIXED): the evaluators are processes of their own, whose memory
 * the change does not concern.
 */
#include "../pages.h"
#include <sched.h>

#define TABLE_PAGES 64
#define UPDATE_NS (2 * MICROSECOND)
#define CALIBRATION 20000

static uint8_t *table;
static uint64_t update_rounds;
static uint64_t ordinary_ns; /* an update while no other thread runs */
static atomic_bool *evaluators_stop;

/* Returns how long the changes of protection took. */
static uint64_t update(uint64_t number)
{
	uint8_t *page = table + number % TABLE_PAGES * PAGE;
	uint64_t began = now_ns(), open, entered;

	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE))
		die("cannot change the protection of a page");
	open = now_ns();
	*(volatile uint64_t *)page = number;
	entered = now_ns();
	if (mprotect(page, PAGE, PROT_READ))
		die("cannot change the protection of a page");
	return open - began + now_ns() - entered;
}

/* Until asked to stop, on a CPU of its own. */
static void evaluate(void *cpu)
{
	cpu_set_t set;
	uint64_t x = 1;

	CPU_ZERO(&set);
	CPU_SET((int)(intptr_t)cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	while (!atomic_load_explicit(evaluators_stop, memory_order_relaxed))
		x = compute(x, 10000);
}

#ifdef FIXED
static pid_t evaluators[MAX_WORKERS];

static void start_evaluator(int i)
{
	evaluators[i] = start_process("evaluator", evaluate, (void *)(intptr_t)i);
}

static void join_evaluator(int i)
{
	waitpid(evaluators[i], NULL, 0);
}
#else
static pthread_t evaluators[MAX_WORKERS];

static void *evaluator(void *cpu)
{
	pthread_setname_np(pthread_self(), "evaluator");
	evaluate(cpu);
	return NULL;
}

static void start_evaluator(int i)
{
	errno = pthread_create(&evaluators[i], NULL, evaluator, (void *)(intptr_t)i);
	if (errno)
		die("cannot start a thread");
}

static void join_evaluator(int i)
{
	pthread_join(evaluators[i], NULL);
}
#endif

static void take_updates(int id, struct account *mine)
{
	cpu_set_t set;

	(void)id;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
	for (; running(); mine->ops++) {
		compute(mine->ops, update_rounds);
		count_loss(mine, above(update(mine->ops), ordinary_ns));
	}
}

static uint64_t ordinary_update(void)
{
	static uint64_t took[CALIBRATION];

	for (int i = 0; i < CALIBRATION; i++)
		took[i] = update((uint64_t)i);
	return median(took, CALIBRATION);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct account sum;

	if (cpus < 2)
		die("one CPU has nobody to interrupt");
	if (cpus > MAX_WORKERS)
		cpus = MAX_WORKERS;
	update_rounds = rounds_for(100 * UPDATE_NS) / 100;
	table = fresh_memory(TABLE_PAGES * PAGE, MAP_POPULATE);
	evaluators_stop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (evaluators_stop == MAP_FAILED)
		die("cannot share a page");
	ordinary_ns = ordinary_update();
	for (int cpu = 1; cpu < cpus; cpu++)
		start_evaluator(cpu);
	sum = run_workers(1, "update", take_updates, seconds);
	atomic_store(evaluators_stop, true);
	for (int cpu = 1; cpu < cpus; cpu++)
		join_evaluator(cpu);

	printf("%llu updates; the two changes of protection take %.2f us on average (with no other thread: %.2f us)\n",
	       (unsigned long long)sum.ops,
	       ((double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) + (double)ordinary_ns) / 1e3,
	       (double)ordinary_ns / 1e3);
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
