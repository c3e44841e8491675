/* Traces its messages, and knows itself why some of them are slow:
 *
 *     traced MESSAGES FOLDER [CRASH]
 *
 * A thread receives a message every millisecond; another one journals it (a short write), and a
 * third runs the logic. Every 50th message is slow in its logic, in turns:
 *   fsync  - writes and syncs a file in FOLDER, 8 times, before it publishes "report"
 *   mutex  - waits for a mutex that a fourth thread holds and sleeps with
 *   cpu    - works for 6 ms on a CPU that another thread of it uses as well
 * Messages behind it wait. For each of these it prints `ID KIND TOTAL PART RAN`: receipt to end,
 * the slow part by its own clock, and the CPU time of that part, in ns.
 * With CRASH it kills itself in the middle of the logic of that message.
 */
#define _GNU_SOURCE
#include "../../../trace/c/whylag.c"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGES 65536
#define BLOCK (256 * 1024)

static whylag_flow order;
static whylag_publish fill, report;
static whylag_trace traces[MESSAGES];
static unsigned messages, crash;
static int journal_pipe[2], logic_pipe[2], journal;
static const char *folder;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t hold, held, spin;
static atomic_int spinning;

static void must(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: %s\n", what, whylag_why());
		exit(1);
	}
}

static uint64_t cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void work(uint64_t ns)
{
	uint64_t until = cpu_time() + ns;

	while (cpu_time() < until)
		;
}

static void on_first_cpu(void)
{
	cpu_set_t allowed, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void hand_over(int pipe, unsigned id)
{
	must(write(pipe, &id, sizeof(id)) == sizeof(id), "handing over");
}

static int take(int pipe, unsigned *id)
{
	return read(pipe, id, sizeof(*id)) == sizeof(*id);
}

static void *journaller(void *unused)
{
	whylag_thread self;
	unsigned id;

	pthread_setname_np(pthread_self(), "journaller");
	must(whylag_register(&self) == 0, "registering");
	while (take(journal_pipe[0], &id)) {
		must(pwrite(journal, &id, sizeof(id), id * 8) > 0, "journal");
		whylag_mark(&traces[id], 0);
		hand_over(logic_pipe[1], id);
	}
	close(logic_pipe[1]);
	whylag_unregister(&self);
	return unused;
}

/* Holds the mutex for 4 ms whenever it is told to. */
static void *holder(void *unused)
{
	struct timespec pause = { 0, 4000000 };

	pthread_setname_np(pthread_self(), "holder");
	for (;;) {
		sem_wait(&hold);
		pthread_mutex_lock(&mutex);
		sem_post(&held);
		nanosleep(&pause, NULL);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

/* Uses the CPU of the logic whenever it is told to, for as long as that works. */
static void *hog(void *unused)
{
	pthread_setname_np(pthread_self(), "hog");
	on_first_cpu();
	for (;;) {
		sem_wait(&spin);
		while (atomic_load(&spinning))
			;
	}
	return unused;
}

static const char *slow_part(unsigned id, int file, const char *block)
{
	int round;

	switch (id / 50 % 3) {
	case 0:
		for (round = 0; round < 8; round++) {
			must(pwrite(file, block, BLOCK, round * BLOCK) == BLOCK, "writing");
			must(fsync(file) == 0, "fsync");
		}
		return "fsync";
	case 1:
		sem_post(&hold);
		while (sem_wait(&held))
			;
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		return "mutex";
	default:
		atomic_store(&spinning, 1);
		sem_post(&spin);
		work(6000000);
		atomic_store(&spinning, 0);
		return "cpu";
	}
}

static void *logic(void *unused)
{
	static char block[BLOCK], path[512];
	whylag_thread self;
	unsigned id;
	int file;

	pthread_setname_np(pthread_self(), "logic");
	on_first_cpu();
	snprintf(path, sizeof(path), "%s/synced", folder);
	file = open(path, O_CREAT | O_RDWR, 0600);
	must(file >= 0, path);
	must(whylag_register(&self) == 0, "registering");
	while (take(logic_pipe[0], &id)) {
		whylag_trace *trace = &traces[id];
		uint64_t t0 = trace->t0;

		whylag_logic_start(&self, trace, WHYLAG_UNKNOWN);
		whylag_published(&self, trace, fill);
		if (id % 50 == 49) {
			uint64_t ran = cpu_time(), began = whylag_now();
			const char *kind = slow_part(id, file, block);
			uint64_t part = whylag_now() - began;

			ran = cpu_time() - ran;
			if (id == crash)
				raise(SIGKILL);
			whylag_published(&self, trace, report);
			whylag_end(&self, trace);
			printf("%u %s %llu %llu %llu\n", id, kind,
			       (unsigned long long)(whylag_now() - t0),
			       (unsigned long long)part, (unsigned long long)ran);
			continue;
		}
		work(20000);
		whylag_published(&self, trace, report);
		whylag_end(&self, trace);
	}
	whylag_unregister(&self);
	return unused;
}

int main(int argc, char **argv)
{
	const char *points[] = { "journalled" };
	pthread_t threads[4];
	struct timespec next;
	char path[512];
	unsigned id;

	must(argc >= 3, "usage: traced MESSAGES FOLDER [CRASH]");
	messages = atoi(argv[1]);
	folder = argv[2];
	crash = argc > 3 ? atoi(argv[3]) : 0;
	must(messages < MESSAGES, "too many messages");
	must(whylag_start(NULL) == 0, "tracing");
	must(whylag_declare(&order, "order", points, 1, 1000000) == 0, "declaring");
	must(whylag_name_publish(&order, "fill", &fill) == 0, "naming");
	must(whylag_name_publish(&order, "report", &report) == 0, "naming");
	snprintf(path, sizeof(path), "%s/journal", folder);
	journal = open(path, O_CREAT | O_RDWR, 0600);
	must(journal >= 0, path);
	must(pipe(journal_pipe) == 0 && pipe(logic_pipe) == 0, "pipes");
	sem_init(&hold, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&spin, 0, 0);
	pthread_create(&threads[0], NULL, journaller, NULL);
	pthread_create(&threads[1], NULL, logic, NULL);
	pthread_create(&threads[2], NULL, holder, NULL);
	pthread_create(&threads[3], NULL, hog, NULL);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (id = 0; id < messages; id++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		whylag_begin(&traces[id], &order, id, whylag_now());
		hand_over(journal_pipe[1], id);
	}
	close(journal_pipe[1]);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	whylag_stop();
	return 0;
}
