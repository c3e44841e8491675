/*
 * Turns: sleeps for 30 ms in one function and then for 1 ms in another, with some work in between.
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
	sleep_ms(1);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	for (int i = 0; i < TURNS; i++) {
		sleeps_long();
		spin_cpu_ns(200000);
		sleeps_briefly();
	}
	return 0;
}
