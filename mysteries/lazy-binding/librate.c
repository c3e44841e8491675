/*
 * The limiter calls sched_yield() in one place only, when a send is blocked. Its library exports
 * 8,192 more functions, as grown libraries do: the dynamic linker has to look through its table.
 */
#include "librate.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t present_interval(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec) / RATE_INTERVAL_NS;
}

/* Waits for the next interval if the limit of this one is reached. */
__attribute__((noinline)) void rate_timer(struct rate *rate)
{
	uint64_t now = present_interval();

	if (now == rate->interval && rate->sent >= rate->limit) {
		rate->blocked++;
		while ((now = present_interval()) == rate->interval)
			sched_yield();
	}
	if (now != rate->interval) {
		rate->interval = now;
		rate->sent = 0;
	}
}

void rate_publish(struct rate *rate, const void *message, unsigned long bytes)
{
	rate_timer(rate);
	if (send(rate->socket, message, bytes, MSG_DONTWAIT) < 0 && errno == EBADF) {
		perror("librate"); /* the caller's fault, and never seen: calls that stay unbound */
		abort();
	}
	rate->sent++;
	rate->messages++;
}

/* The rest of the library. */
#define ONE(n) void rate_function_number_##n(void) {}
#define EIGHT(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7)
#define SIXTY_FOUR(n) \
	EIGHT(n##0) EIGHT(n##1) EIGHT(n##2) EIGHT(n##3) EIGHT(n##4) EIGHT(n##5) EIGHT(n##6) EIGHT(n##7)
#define MANY(n) \
	SIXTY_FOUR(n##0) SIXTY_FOUR(n##1) SIXTY_FOUR(n##2) SIXTY_FOUR(n##3) \
	SIXTY_FOUR(n##4) SIXTY_FOUR(n##5) SIXTY_FOUR(n##6) SIXTY_FOUR(n##7)

MANY(0) MANY(1) MANY(2) MANY(3) MANY(4) MANY(5) MANY(6) MANY(7)
MANY(8) MANY(9) MANY(a) MANY(b) MANY(c) MANY(d) MANY(e) MANY(f)
