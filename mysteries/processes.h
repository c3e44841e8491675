/*
 * A crew of processes instead of threads, for faults between programs that share nothing but the
 * kernel. Accounts and the sign to stop are in shared memory; the children die with us.
 */
#ifndef MYSTERIES_PROCESSES_H
#define MYSTERIES_PROCESSES_H

#include "measure.h"
#include <sys/mman.h>

static struct crew {
	atomic_bool stopping;
	struct worker workers[MAX_WORKERS];
} *crew;

static inline bool crew_running(void)
{
	return !atomic_load_explicit(&crew->stopping, memory_order_relaxed);
}

/* Zeroed memory that children see, too. */
static inline void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot share %zu bytes with the processes to come", bytes);
	return memory;
}

static inline void create_crew(void)
{
	crew = shared_memory(sizeof *crew);
}

static inline void be_worker(void *worker)
{
	worker_main(worker);
}

/* As run_workers(), with a process for each worker. */
static inline struct account run_crew(int count, const char *name, worker_fn body, double seconds)
{
	pid_t pids[MAX_WORKERS];
	struct account sum = { 0 };

	for (int i = 0; i < count; i++) {
		crew->workers[i] = (struct worker){ .id = i, .name = name, .body = body };
		pids[i] = start_process(name, be_worker, &crew->workers[i]);
	}
	wait_for_end(seconds);
	atomic_store(&crew->stopping, true);
	for (int i = 0; i < count; i++) {
		waitpid(pids[i], NULL, 0);
		add_account(&sum, &crew->workers[i].account);
	}
	return sum;
}

#endif
