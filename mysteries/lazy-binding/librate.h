/* A publisher's library: messages go out as fast as they come, within a rate limit. */
#ifndef LIBRATE_H
#define LIBRATE_H

#include <stdint.h>

#define RATE_INTERVAL_NS 5000000ULL

/* A limiter, and what it has seen. */
struct rate {
	uint64_t limit;    /* messages in an interval */
	uint64_t interval; /* number of the present one */
	uint64_t sent;     /* in it */
	uint64_t messages; /* in all */
	uint64_t blocked;  /* sends that had to wait for the next interval */
	int socket;        /* connected */
};

/* Publishes `bytes` of `message`, as soon as the limit allows. */
void rate_publish(struct rate *rate, const void *message, unsigned long bytes);

#endif
