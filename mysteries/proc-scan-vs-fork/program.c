/*
 * A server has a thread for each of thousands of idle connections, and starts one for each request,
 * which ends with it. Next to it a monitor looks at the server now and then, as top does.
 *
 * Faulty: the monitor reads /proc/PID/stat. The kernel adds up the CPU times of all threads for
 * that, and does so under a lock where a thread came or went meanwhile; who ends must take that lock
 * to leave its own times behind, and spins, while it holds the lock of the host's list of tasks.
 * Fixed (-DFIXED): the monitor reads /proc/PID/status, which has memory and the number of threads,
 * and adds nothing up.
 */
#include "../idle_threads.h"
#include "../own_cpu.h"
#include "../processes.h"

#define CONNECTIONS 8000
#define REQUEST_NS (5 * MICROSECOND)
#define SLOT_NS (200 * MILLISECOND)
#define SLOTS 4 /* in the first of them the monitor reads what costs nothing */

#ifdef FIXED
#define FILE_READ "status"
#else
#define FILE_READ "stat"
#endif

static struct shared {
	atomic_bool go;
	atomic_ulong reads, read_ns;
} *shared;
static pid_t server;
static uint64_t rounds;

static bool monitor_reads(uint64_t now)
{
	return now / SLOT_NS % SLOTS > 0;
}

static void look_at_server(void *unused)
{
	static char buffer[1 << 14];
	char dear[64], cheap[64];

	(void)unused;
	snprintf(dear, sizeof dear, "/proc/%d/" FILE_READ, server);
	snprintf(cheap, sizeof cheap, "/proc/%d/status", server);
	for (;;) {
		uint64_t began = now_ns();
		bool reads = monitor_reads(began);
		int fd;

		if (!shared->go) {
			sleep_until(began + MILLISECOND);
			continue;
		}
		/* The other CPU is as busy all the time, and in the kernel. */
		fd = open(reads ? dear : cheap, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, buffer, sizeof buffer) <= 0)
			die("cannot read %s", dear);
		close(fd);
		if (reads) {
			shared->reads++;
			shared->read_ns += now_ns() - began;
		}
	}
}

static void *request(void *number)
{
	compute((uint64_t)(uintptr_t)number, rounds);
	return NULL;
}

/* What the server did in slots of one kind. */
struct kind {
	uint64_t requests;
	uint64_t cpu_ns; /* of the whole process */
};

/*
 * A thread that waits for a spinlock is on its CPU: the loss is the CPU time that a request takes more while
 * the monitor reads. A request is over for the server before its thread is gone, so the times of
 * calls do not show it. The clock adds up all threads, too; it is read only where the slot changes.
 */
static void serve(int id, struct account *mine)
{
	struct kind kinds[2] = { 0 };
	bool reads = monitor_reads(now_ns());
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ordinary;
	pthread_attr_t attributes;

	(void)id;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IDLE_STACK_BYTES);
	for (; running(); mine->ops++) {
		bool now_reads = monitor_reads(now_ns());
		pthread_t thread;

		if (now_reads != reads) {
			uint64_t before = cpu;

			cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
			kinds[reads].cpu_ns += cpu - before;
			reads = now_reads;
		}
		errno = pthread_create(&thread, &attributes, request, (void *)(uintptr_t)mine->ops);
		if (errno)
			die("cannot start a thread");
		pthread_join(thread, NULL);
		kinds[reads].requests++;
	}
	kinds[reads].cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	pthread_attr_destroy(&attributes);
	ordinary = kinds[0].requests ? kinds[0].cpu_ns / kinds[0].requests : 0;
	mine->lost_ns = above(kinds[1].cpu_ns, kinds[1].requests * ordinary);
	mine->max_ns = kinds[1].requests ? mine->lost_ns / kinds[1].requests : 0;
	printf("a request takes %.1f us of CPU time, %.1f us while the monitor reads\n",
	       (double)ordinary / 1e3,
	       kinds[1].requests ? (double)kinds[1].cpu_ns / (double)kinds[1].requests / 1e3 : 0);
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;
	pid_t monitor;

	server = getpid();
	rounds = rounds_for(REQUEST_NS);
	shared = shared_memory(sizeof *shared);
	divide_cpus();
	monitor = start_process("monitor", look_at_server, NULL);
	move_to_own_cpu();
	start_idle_threads(CONNECTIONS);
	shared->go = true;
	sum = run_workers(1, "server", serve, seconds);
	end_process(monitor);
	end_idle_threads();
	printf("%llu requests with %d idle threads; %lu reads of /proc/PID/" FILE_READ " of %.2f ms\n",
	       (unsigned long long)sum.ops, CONNECTIONS, shared->reads,
	       shared->reads ? (double)shared->read_ns / (double)shared->reads / 1e6 : 0);
	print_truth(&sum, " reads=%lu", shared->reads);
	return 0;
}
