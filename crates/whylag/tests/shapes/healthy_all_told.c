/*
 * Healthy: four workers sleep on one word, and whoever has something for all of them to do changes it and
 * wakes all: each 10 ms, when it has come. Nobody waits for that one, which sleeps until then: there
 * is nothing to do.
 */
#include "shape.h"
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

static atomic_uint orders;

static void work(int id)
{
	for (unsigned seen = 0; going(); seen = atomic_load(&orders)) {
		while (atomic_load(&orders) == seen)
			syscall(SYS_futex, &orders, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		compute_ms(0.1);
		sleep_ms(2);
	}
}

static void give_orders(int id)
{
	bool over = false;

	for (uint64_t next = now_ns(); !over; next += 10 * MILLISECOND) {
		sleep_until(next);
		compute_ms(0.3);
		over = !going();
		atomic_fetch_add(&orders, 1);
		syscall(SYS_futex, &orders, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("worker", 4, work);
	start_threads("foreman", 1, give_orders);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
