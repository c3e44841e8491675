/*
 * A semaphore as C++20 has it: who finds none left looks a few times more, giving way in between, and then
 * sleeps on its count; whoever gives one back wakes all. It is used as a lock, and whoever has it sleeps
 * for 5 ms. All are let go together, but only one goes on.
 */
#include "shape.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#define LOOKS 4

static int left = 1;

static bool take(void)
{
	int now = __atomic_load_n(&left, __ATOMIC_ACQUIRE);

	return now > 0 && __atomic_compare_exchange_n(&left, &now, now - 1, false,
						      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void acquire(void)
{
	for (;;) {
		for (int i = 0; i < LOOKS; i++) {
			if (take())
				return;
			sched_yield();
		}
		syscall(SYS_futex, &left, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	}
}

static void release(void)
{
	__atomic_add_fetch(&left, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &left, FUTEX_WAKE_PRIVATE, MAX_CREW, NULL, NULL, 0);
}

static void query(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		acquire();
		wait_ends(wait, 0);
		sleep_ms(5);
		release();
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("session", 5, query);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,timer", "session-", "sleep" });
}
