/*
 * Eight threads get a request every 2 ms each. To answer it they encode a reply, 0.35 ms of
 * computing, and enter it in a table that all share under one lock. The lock is home-made: a flag,
 * and whoever finds it set calls sched_yield() and looks again.
 *
 * Faulty: the reply is encoded while the lock is held, so the others wait for a slow holder, and
 * they wait on the CPUs: sched_yield does not sleep, it only lets the next one look, and the
 * holder itself waits for its turn among them. Fixed (-DFIXED): only the entry is made under the
 * lock, and it is a mutex, which sleeps.
 */
#include "../common.h"
#include <sched.h>

#define THREADS 8
#define PERIOD_NS (2 * MILLISECOND)
#define ENCODE_NS (350 * MICROSECOND)
#define SLOTS 1024

static uint64_t table[SLOTS];
static uint64_t encode_rounds;
static _Atomic uint64_t missed, yields;

#ifdef FIXED
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&table_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&table_lock);
}
#else
static atomic_bool table_lock;

__attribute__((noinline)) static void lock(void)
{
	uint64_t looked = 0;

	while (atomic_exchange_explicit(&table_lock, true, memory_order_acquire)) {
		sched_yield();
		looked++;
	}
	if (looked)
		yields += looked;
}

static void unlock(void)
{
	atomic_store_explicit(&table_lock, false, memory_order_release);
}
#endif

/* Takes the lock and returns how long that took. */
static uint64_t lock_table(void)
{
	uint64_t began = now_ns();

	lock();
	return now_ns() - began;
}

static uint64_t answer(int id, uint64_t request)
{
	uint64_t waited;

#ifdef FIXED
	uint64_t reply = compute(request, encode_rounds);
	waited = lock_table();
#else
	waited = lock_table();
	uint64_t reply = compute(request, encode_rounds);
#endif
	table[(request * THREADS + (uint64_t)id) % SLOTS] = reply;
	unlock();
	return waited;
}

static void answer_requests(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS + (uint64_t)id * PERIOD_NS / THREADS;

	for (; running(); next += PERIOD_NS) {
		for (; next + PERIOD_NS < now_ns(); next += PERIOD_NS)
			missed++;
		sleep_until(next);
		count_loss(mine, answer(id, mine->ops));
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	uint64_t began;

	encode_rounds = rounds_for(ENCODE_NS);
	began = now_ns();
	sum = run_workers(THREADS, "request", answer_requests, seconds);

	printf("%.0f requests/s answered, %llu missed, %llu yields\n",
	       (double)sum.ops / ((double)(now_ns() - began) / 1e9), (unsigned long long)missed,
	       (unsigned long long)yields);
	printf("a request waits %.0f us for the lock on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " missed=%llu yields=%llu", (unsigned long long)missed,
		    (unsigned long long)yields);
	return 0;
}
