/*
 * A routing table is read without locks by one thread and replaced piece by piece by two writers.
 * Before a writer frees what it replaced, it must be sure that the reader has seen the change:
 * membarrier() makes all threads of the process pass a memory barrier, so that the reader's side
 * needs none.
 *
 * Faulty: MEMBARRIER_CMD_GLOBAL, for which the kernel waits for an RCU grace period. Fixed
 * (-DFIXED): MEMBARRIER_CMD_PRIVATE_EXPEDITED, which interrupts the CPUs that run threads of this
 * process, and those only.
 */
#include "../common.h"
#include <linux/membarrier.h>
#include <sys/syscall.h>

#define WRITERS 2
#define ROUTES 256
#define UPDATE_PERIOD_NS MILLISECOND
#define LOOKUP_PERIOD_NS MILLISECOND
#define LOOKUPS 1000

#ifdef FIXED
#define BARRIER MEMBARRIER_CMD_PRIVATE_EXPEDITED
#else
#define BARRIER MEMBARRIER_CMD_GLOBAL
#endif

struct route {
	uint64_t gateway;
};

static _Atomic(struct route *) table[ROUTES];
static _Atomic(struct route *) in_use; /* what the reader looks at: not to be freed */
static _Atomic uint64_t lookups;
static uint64_t ordinary_ns; /* a barrier for which nobody has to wait */

static void barrier(int command)
{
	if (syscall(SYS_membarrier, command, 0, 0))
		die("membarrier refused");
}

static struct route *new_route(uint64_t gateway)
{
	struct route *route = malloc(sizeof *route);

	if (!route)
		die("no memory");
	route->gateway = gateway;
	return route;
}

/* The reader: announces what it looks at with plain stores, without any barrier. */
static uint64_t look_up(uint64_t destination)
{
	struct route *route;
	uint64_t gateway;

	do {
		route = atomic_load_explicit(&table[destination % ROUTES], memory_order_relaxed);
		atomic_store_explicit(&in_use, route, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	} while (route != atomic_load_explicit(&table[destination % ROUTES], memory_order_relaxed));
	gateway = route->gateway;
	atomic_store_explicit(&in_use, NULL, memory_order_release);
	return gateway;
}

static void *reader(void *unused)
{
	uint64_t found = 0;

	pthread_setname_np(pthread_self(), "reader");
	for (uint64_t next = now_ns(); running(); next += LOOKUP_PERIOD_NS) {
		sleep_until(next);
		for (int i = 0; i < LOOKUPS; i++)
			found += look_up(found + (uint64_t)i);
		lookups += LOOKUPS;
	}
	return unused;
}

static void update(uint64_t n, struct account *mine)
{
	struct route *old = atomic_exchange(&table[n % ROUTES], new_route(n));
	uint64_t began = now_ns(), took;

	barrier(BARRIER);
	took = now_ns() - began;
	count_loss(mine, took > ordinary_ns ? took - ordinary_ns : 0);
	while (atomic_load(&in_use) == old)
		sched_yield();
	free(old);
	mine->ops++;
}

/* The median of many. */
static uint64_t ordinary_barrier(void)
{
	uint64_t took[101];

	for (int i = 0; i < 101; i++) {
		uint64_t began = now_ns();
		int at = i;

		barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
		uint64_t one = now_ns() - began;
		for (; at > 0 && took[at - 1] > one; at--)
			took[at] = took[at - 1];
		took[at] = one;
	}
	return took[50];
}

static void update_routes(int id, struct account *mine)
{
	uint64_t next = now_ns();

	for (uint64_t n = (uint64_t)id; running(); n += WRITERS, next += UPDATE_PERIOD_NS) {
		if (next < now_ns())
			next = now_ns(); /* late: no catching up */
		sleep_until(next);
		update(n, mine);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pthread_t looking;
	struct account sum;

	for (uint64_t i = 0; i < ROUTES; i++)
		table[i] = new_route(i);
	barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	ordinary_ns = ordinary_barrier();
	errno = pthread_create(&looking, NULL, reader, NULL);
	if (errno)
		die("cannot start the reader");
	sum = run_workers(WRITERS, "writer", update_routes, seconds);
	pthread_join(looking, NULL);

	printf("%llu routes updated, %llu looked up\n", (unsigned long long)sum.ops,
	       (unsigned long long)lookups);
	printf("an update waits %.2f ms for its barrier on average, %.1f ms at worst: %.0f %% of the writers' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " ordinary_ns=%llu", (unsigned long long)ordinary_ns);
	return 0;
}
