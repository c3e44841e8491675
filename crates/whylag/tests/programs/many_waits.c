/*
 * Sleeps for 2,000 moments, one in ten by way of another function.
 * Without frame pointers.
 */
#pragma GCC optimize("O2", "omit-frame-pointer")
#include <time.h>

static volatile int kept;

__attribute__((noipa)) static void moment(void)
{
	struct timespec time = { 0, 60000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	kept++;
}

__attribute__((noipa)) static void often(void)
{
	moment();
	kept++;
}

__attribute__((noipa)) static void seldom(void)
{
	moment();
	kept++;
}

int main(void)
{
	for (int i = 0; i < 2000; i++)
		i % 10 == 5 ? seldom() : often();
	return 0;
}
