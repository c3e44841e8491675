/*
 * Waits in a futex, a pipe and a timer, in turn, each time called through the same twelve functions.
 * Without frame pointers. Each function uses the stack in another way.
 */
#pragma GCC optimize("O2", "omit-frame-pointer")
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned word;
static int ends[2];
static volatile int kept;

#define MS 1000000L

static void sleep_ms(long ms)
{
	struct timespec time = { 0, ms * MS };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

__attribute__((noipa)) static int wait_here(int how)
{
	struct timespec time = { 0, 20 * MS };
	char byte;

	if (how == 0)
		kept += syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
	else if (how == 1)
		kept += read(ends[0], &byte, 1);
	else
		sleep_ms(20);
	return kept;
}

#define CALLER(name, callee, bytes)						\
	__attribute__((noipa)) static int name(int how)			\
	{									\
		volatile char room[bytes];					\
										\
		memset((char *)room, how, sizeof(room));			\
		return callee(how) + room[how];					\
	}

CALLER(f12, wait_here, 8)
CALLER(f11, f12, 24)
CALLER(f10, f11, 1)
CALLER(f9, f10, 400)
CALLER(f8, f9, 40)

/* The compiler needs a frame pointer for this one alone. */
__attribute__((noipa)) static int f7(int how)
{
	volatile char room[how * 16 + 8];

	room[0] = how;
	return f8(how) + room[0];
}

CALLER(f6, f7, 16)
CALLER(f5, f6, 100)

/* Its stack is aligned anew. */
__attribute__((noipa)) static int f4(int how)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[how] = how;
	return f5(how) + room[how];
}

CALLER(f3, f4, 32)
CALLER(f2, f3, 200)
CALLER(f1, f2, 8)

static void *writes(void *unused)
{
	for (int i = 0; i < 10; i++) {
		sleep_ms(60);
		kept += write(ends[1], "x", 1);
	}
	return unused;
}

int main(void)
{
	pthread_t writer;

	if (pipe(ends) || pthread_create(&writer, NULL, writes, NULL))
		return 1;
	for (int i = 0; i < 10; i++)
		for (int how = 0; how < 3; how++)
			kept += f1(how);
	pthread_join(writer, NULL);
	return 0;
}
