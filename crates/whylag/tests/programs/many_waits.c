/*
 * Sleeps for moments as often as it can for 1.5 s, one in ten by way of another function.
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

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(void)
{
	double end = now() + 1.5;

	for (int i = 0; now() < end; i++)
		i % 10 == 5 ? seldom() : often();
	return 0;
}
