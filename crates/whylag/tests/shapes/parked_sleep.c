/*
 * A lock as parking_lot makes it: a byte with the bits LOCKED and PARKED that is spun on for a
 * moment; who does not get it puts itself into a queue and sleeps on a futex of its own, so that no
 * futex word is shared. The holder sleeps for 4 ms.
 */
#include "shape.h"
#include <linux/futex.h>
#include <sys/syscall.h>

#define WORKERS 5
#define LOCKED 1u
#define PARKED 2u

static _Atomic uint32_t word, parker[WORKERS];
static atomic_flag bucket = ATOMIC_FLAG_INIT;
static int queue[WORKERS], queued;

static void enter_bucket(void)
{
	while (atomic_flag_test_and_set(&bucket))
		sched_yield();
}

/* Sleeps until handed the lock, unless it is free by now. */
static bool parked(int id)
{
	uint32_t old;

	enter_bucket();
	old = atomic_load(&word);
	while (!(old & LOCKED))
		if (atomic_compare_exchange_strong(&word, &old, old | LOCKED)) {
			atomic_flag_clear(&bucket);
			return false;
		}
	atomic_fetch_or(&word, PARKED);
	parker[id] = 1;
	queue[queued++] = id;
	atomic_flag_clear(&bucket);
	while (parker[id])
		syscall(SYS_futex, &parker[id], FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	return true;
}

static void acquire(int id)
{
	for (int spins = 0; spins < 100; spins++) {
		uint32_t is_free = 0;

		if (atomic_compare_exchange_strong(&word, &is_free, LOCKED))
			return;
	}
	parked(id);
}

/* Hands the lock to the first in the queue. */
static void release(void)
{
	int next = -1;

	enter_bucket();
	if (queued) {
		next = queue[0];
		memmove(queue, queue + 1, sizeof *queue * (size_t)--queued);
	}
	atomic_store(&word, next < 0 ? 0 : queued ? LOCKED | PARKED : LOCKED);
	atomic_flag_clear(&bucket);
	if (next >= 0) {
		parker[next] = 0;
		syscall(SYS_futex, &parker[next], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void work(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		acquire(id);
		wait_ends(wait, 0);
		sleep_ms(4);
		release();
		sleep_ms(1 + id % 2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("session", WORKERS, work);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "session-", "sleep" });
}
