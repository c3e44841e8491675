/*
 * moves_on [BRIEF]
 *
 * Turns: sleeps for 30 ms in one function, works, and then sleeps for 0.1 ms in another, BRIEF times (1).
 */
#include "clock.h"

#define TURNS 30

static __attribute__((noinline)) void sleeps_long(void)
{
	sleep_ms(30);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void sleeps_briefly(void)
{
	struct timespec t = { 0, 100000 };

	nanosleep(&t, NULL);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	int brief = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < TURNS; i++) {
		sleeps_long();
		spin_cpu_ns(200000);
		for (int j = 0; j < brief; j++)
			sleeps_briefly();
	}
	return 0;
}
