/*
 * Two threads compute. Next to them runs an agent, a process of its own, that takes a picture of
 * all their memory ten times a second.
 *
 * Faulty: as gcore and pstack do, it attaches to every thread with ptrace and holds it while it
 * copies, so that the picture is of one moment. Fixed (-DFIXED): it copies without stopping
 * anybody.
 */
#include "../common.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define THREADS 2
#define STEP_NS (20 * MICROSECOND)
#define GAP_NS (200 * MICROSECOND) /* a step that took longer was interrupted */
#define PICTURE_PERIOD_NS (100 * MILLISECOND)
#define MAX_THREADS 64

static uint8_t *memory;
static size_t memory_bytes;
static uint64_t step_rounds;
static _Atomic uint64_t gaps;

struct picture {
	pid_t pid;
	pid_t threads[MAX_THREADS];
	int count;
	uint8_t *copy;
};

#ifndef FIXED
/* Stops all threads of the process. */
static void hold(struct picture *picture)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;

	picture->count = 0;
	snprintf(path, sizeof path, "/proc/%d/task", picture->pid);
	threads = opendir(path);
	if (!threads)
		_exit(1);
	while ((entry = readdir(threads)) && picture->count < MAX_THREADS) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || ptrace(PTRACE_SEIZE, tid, 0, 0))
			continue;
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		if (waitpid(tid, NULL, __WALL) == tid)
			picture->threads[picture->count++] = tid;
	}
	closedir(threads);
	if (!picture->count)
		_exit(1);
}

static void let_go(struct picture *picture)
{
	for (int i = 0; i < picture->count; i++)
		ptrace(PTRACE_DETACH, picture->threads[i], 0, 0);
}
#else
static void hold(struct picture *picture) { (void)picture; }
static void let_go(struct picture *picture) { (void)picture; }
#endif

static void agent(void *service)
{
	struct picture picture = { .pid = *(pid_t *)service, .copy = malloc(memory_bytes) };

	if (!picture.copy)
		_exit(1);
	memset(picture.copy, 1, memory_bytes);
	for (uint64_t next = now_ns() + PICTURE_PERIOD_NS;; next += PICTURE_PERIOD_NS) {
		struct iovec to = { picture.copy, memory_bytes }, from = { memory, memory_bytes };

		sleep_until(next);
		hold(&picture);
		if (process_vm_readv(picture.pid, &to, 1, &from, 1, 0) < 0)
			_exit(1);
		let_go(&picture);
	}
}

/* The same small piece of work again and again. What one took beyond the median, if it was much,
 * is a time in which this thread did not run; for waiting for a CPU the kernel has a count. */
static void work(int id, struct account *mine)
{
	uint64_t x = (uint64_t)id, last = now_ns(), waited = runq_ns();

	for (; running(); mine->ops++) {
		uint64_t now, took;

		x = compute(x, step_rounds);
		now = now_ns();
		took = now - last;
		last = now;
		if (took > GAP_NS) {
			uint64_t queued = runq_ns() - waited;
			uint64_t other = STEP_NS + queued;

			waited += queued;
			count_loss(mine, took > other ? took - other : 0);
			gaps++;
			last = now_ns();
		}
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t service = getpid(), picture;
	struct account sum;

	memory_bytes = (size_t)argument(argc, argv, 2, "MIB", 1, 65536, 128) << 20;
	memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The agent must not inherit it: pages shared after a fork would be copied when first read. */
	if (memory == MAP_FAILED || madvise(memory, memory_bytes, MADV_POPULATE_WRITE) ||
	    madvise(memory, memory_bytes, MADV_DONTFORK))
		die("cannot get %zu MiB of memory (ask for less: SECONDS MIB)", memory_bytes >> 20);
	step_rounds = rounds_for(STEP_NS);
	picture = start_process("agent", agent, &service);
	prctl(PR_SET_PTRACER, picture); /* where a security module asks for it */
	sum = run_workers(THREADS, "worker", work, seconds);
	end_process(picture);

	printf("%.0f steps/s\n", (double)sum.ops * 1e9 / (double)sum.wall_ns);
	printf("%llu times a worker stood still, %.1f ms on average, %.1f ms at worst: %.0f %% of its time\n",
	       (unsigned long long)gaps, (double)sum.lost_ns / (double)(gaps ? gaps : 1) / 1e6,
	       (double)sum.max_ns / 1e6, share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " gaps=%llu", (unsigned long long)gaps);
	return 0;
}
