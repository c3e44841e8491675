/* What the receiver and its helpers have in common. */
#ifndef FEED_H
#define FEED_H

#include "../loopback.h"
#include <sys/mman.h>

#define BUSY_FILE_BYTES (64L << 20)

/* A datagram of the feed. */
struct message {
	uint64_t number;
	uint64_t sent_ns;
};

/* What the lives of the receiver and its helpers share, in a file. */
struct state {
	_Atomic uint64_t port; /* where the present life receives; 0: nowhere */
	_Atomic uint64_t naks; /* that the sender got */
	uint64_t naks_sent, missing, stalls, stalled_lives, major_faults, blocked;
	struct account sum;
	int life;              /* 1: the first */
	int busy_file;
	pid_t sender, reader;
};

static inline struct state *map_state(int fd)
{
	void *state = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (state == MAP_FAILED)
		die("cannot share a file");
	return state;
}

#endif
