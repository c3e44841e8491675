/*
 * Two causes: one thread maps, fills and unmaps 4 MiB again and again (page faults), and two more
 * log into a pipe that a process empties by 4 KiB every 4 ms.
 */
#include "shape.h"

#define ARENA (4UL << 20)

static int ends[2];

static void collect(void *nothing)
{
	char text[4096];

	close(ends[1]);
	while (read(ends[0], text, sizeof text) > 0)
		sleep_ms(4);
}

static void log_lines(int id)
{
	char line[2048];

	memset(line, 'l', sizeof line);
	while (going()) {
		struct wait wait = wait_begins();

		if (write(ends[1], line, sizeof line) < 0)
			die("the log is closed");
		wait_ends(wait, 0);
	}
}

/* The second touch of a page takes no fault: the difference is what faults take. */
static uint64_t touch(volatile char *arena)
{
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (size_t at = 0; at < ARENA; at += 4096)
		arena[at] = 1;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

static void fill_arenas(int id)
{
	while (going()) {
		char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (arena == MAP_FAILED)
			die("no memory");
		madvise(arena, ARENA, MADV_NOHUGEPAGE);
		uint64_t first = touch(arena), again = touch(arena);
		shared->lost_ns[1] += first > again ? first - again : 0;
		munmap(arena, ARENA);
		compute_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe2(ends, O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
		die("pipe");
	start_process("collector", collect, NULL);
	start_threads("logger", 2, log_lines);
	start_threads("allocator", 1, fill_arenas);
	run_for(seconds);
	join_crew();
	return TRUTH({ "blocked-log-pipe", "collector", "sleep" }, { "first-touch,malloc-trim", "allocator-", "cpu" });
}
