/*
 * Healthy: workers wait for work in a word of their own stack, for the value 2, as pthread_cond_wait
 * of musl does. A sensor wakes one of them every 5 ms; nobody is late.
 */
#include "shape.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#define WORKERS 4

static _Atomic(_Atomic uint32_t *) asleep[WORKERS];
static atomic_bool has_ended[WORKERS];

/* Until the word is changed. */
static void wait_for_work(int id)
{
	_Atomic uint32_t word = 2;

	atomic_store(&asleep[id], &word);
	while (atomic_load(&word) == 2)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void wake(int id)
{
	_Atomic uint32_t *word = atomic_exchange(&asleep[id], NULL);

	if (!word)
		return;
	/* It may be gone by the time of the call, which then wakes nobody. */
	atomic_store(word, 0);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void work(int id)
{
	while (going()) {
		wait_for_work(id);
		compute_ms(0.2);
	}
	atomic_store(&has_ended[id], true);
}

static void sense(int id)
{
	int next = 0;

	for (uint64_t at = now_ns(); going(); at += 5 * MILLISECOND) {
		sleep_until(at);
		wake(next++ % WORKERS);
	}
	for (int i = 0; i < WORKERS; i++)
		while (!atomic_load(&has_ended[i])) {
			wake(i);
			sleep_ms(1);
		}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("worker", WORKERS, work);
	until_workers_wait();
	start_threads("sensor", 1, sense);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
