/*
 * Two threads count orders in one book each a thousand times a second and more.
 *
 * Faulty: one spinlock is for both books, and is held while an order is computed for 100 us. Fixed (-DFIXED): each
 * book has its own.
 *
 * lost_ns: CPU time in pthread_spin_lock beyond a microsecond.
 */
#include "../measure.h"

#define THREADS 2
#define ORDER_NS (100 * MICROSECOND)
#define PAUSE_NS (30 * MICROSECOND)

static pthread_spinlock_t locks[THREADS];
static uint64_t order, pause_rounds;

static void trade(int id, struct account *mine)
{
#ifdef FIXED
	pthread_spinlock_t *lock = &locks[id];
#else
	pthread_spinlock_t *lock = &locks[0];
#endif
	uint64_t begun;

	(void)id;
	while (running()) {
		begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		pthread_spin_lock(lock);
		count_loss(mine, above(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun, MICROSECOND));
		compute(1, order);
		pthread_spin_unlock(lock);
		compute(1, pause_rounds);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	for (int i = 0; i < THREADS; i++)
		pthread_spin_init(&locks[i], PTHREAD_PROCESS_PRIVATE);
	order = rounds_for(ORDER_NS);
	pause_rounds = rounds_for(PAUSE_NS);
	sum = run_workers(THREADS, "trader", trade, seconds);
	printf("%llu orders\n", (unsigned long long)sum.ops);
	print_truth(&sum, "%s", "");
	return 0;
}
