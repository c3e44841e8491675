/*
 * A supervisor keeps two workers running. A worker loads 96 MiB of state, works for a moment and
 * hits a bug: abort(). The next one starts when the dead one is gone.
 *
 * Faulty: core dumps are unlimited, so the kernel first writes the worker's memory to a file.
 * Fixed (-DFIXED): RLIMIT_CORE is 0.
 *
 * What a crash costs without a core is measured in the same run: every fourth worker makes itself
 * undumpable (PR_SET_DUMPABLE) before it crashes.
 */
#include "../common.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SLOTS 2
#define STATE_BYTES (96UL << 20)
#define WORK_NS (20 * MILLISECOND)
#define BASELINE_EVERY 4

static _Atomic uint64_t *crashed_ns; /* shared with the workers, one of each slot */
static uint64_t work_rounds;
static char directory[4000];
static _Atomic uint64_t baseline_ns, baseline_count, dump_ns, dump_count;

/* The kernel could pipe cores to a program, or put them where we cannot remove them. */
static void need_cores_in_the_current_directory(void)
{
	FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
	char pattern[256] = "";

	if (!file || !fgets(pattern, sizeof pattern, file) || strchr("|@/\n", pattern[0])) {
		errno = 0;
		die("needs a kernel.core_pattern for the current directory, not %s", pattern);
	}
	fclose(file);
}

/* The directory of a slot, and the cores in it. */
static void slot_directory(int slot, char *path, size_t length)
{
	snprintf(path, length, "%s/%d", directory, slot);
}

static void remove_cores(int slot)
{
	char path[4096];
	struct dirent *entry;
	DIR *cores;

	slot_directory(slot, path, sizeof path);
	cores = opendir(path);
	while (cores && (entry = readdir(cores)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(cores), entry->d_name, 0);
	if (cores)
		closedir(cores);
}

static void make_directories(void)
{
	const char *top = getenv("TMPDIR");
	char path[4096];

	snprintf(directory, sizeof directory, "%s/whylag-mystery-XXXXXX", top && *top ? top : "/var/tmp");
	if (!mkdtemp(directory))
		die("cannot make a directory for cores (set TMPDIR)");
	for (int slot = 0; slot < SLOTS; slot++) {
		slot_directory(slot, path, sizeof path);
		if (mkdir(path, 0700))
			die("cannot make %s", path);
	}
}

static void remove_directories(void)
{
	char path[4096];

	for (int slot = 0; slot < SLOTS; slot++) {
		remove_cores(slot);
		slot_directory(slot, path, sizeof path);
		rmdir(path);
	}
	rmdir(directory);
}

struct order {
	int slot;
	bool dumps;
};

static void work_and_crash(void *argument)
{
	struct order *order = argument;
	char path[4096];
	char *state = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	slot_directory(order->slot, path, sizeof path);
	if (state == MAP_FAILED || chdir(path))
		_exit(1);
	if (!order->dumps)
		prctl(PR_SET_DUMPABLE, 0);
	memset(state, 'x', STATE_BYTES);
	compute((uint64_t)order->slot, work_rounds);
	crashed_ns[order->slot] = now_ns();
	abort();
}

static void supervise(int slot, struct account *mine)
{
	for (uint64_t n = 0; running(); n++) {
		struct order order = { .slot = slot, .dumps = n % BASELINE_EVERY != 0 };
		pid_t pid = start_process("worker", work_and_crash, &order);
		uint64_t took;

		waitpid(pid, NULL, 0);
		took = now_ns() - crashed_ns[slot];
		if (order.dumps) {
			dump_ns += took;
			dump_count++;
			count_loss(mine, took);
		} else {
			baseline_ns += took;
			baseline_count++;
		}
		mine->ops++;
		remove_cores(slot);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct rlimit limit = { 0 };
	struct account sum;
	uint64_t usual, ordinary;

	need_cores_in_the_current_directory();
#ifndef FIXED
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
#endif
	if (setrlimit(RLIMIT_CORE, &limit))
		die("cannot set the limit of core dumps (needs root or `ulimit -c unlimited`)");
	work_rounds = rounds_for(WORK_NS);
	crashed_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_directories();
	sum = run_workers(SLOTS, "supervise", supervise, seconds);
	remove_directories();

	usual = baseline_count ? baseline_ns / baseline_count : 0;
	ordinary = usual * dump_count;
	sum.lost_ns = sum.lost_ns > ordinary ? sum.lost_ns - ordinary : 0;
	printf("%llu workers crashed; until one is gone takes %.1f ms on average, %.1f ms at worst; %.1f ms when undumpable\n",
	       (unsigned long long)sum.ops, (double)dump_ns / (double)(dump_count ? dump_count : 1) / 1e6,
	       (double)sum.max_ns / 1e6, (double)usual / 1e6);
	printf("dumping is %.0f %% of the supervisor's time\n", share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " dumps=%llu", (unsigned long long)dump_count);
	return 0;
}
