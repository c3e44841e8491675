/*
 * What every shape needs beside mysteries/common.h: crews of threads and of processes, waits that
 * the program measures itself, three kinds of work, a small server, and the last line:
 *
 *     truth: healthy=0 cause.0=NAMES lost_ns.0=NS behind.0=NAME does.0=WHAT cause.1=...
 *
 * NAMES: what a finding may call it, with commas between: ids of the catalogue, or the name of the
 * end (timer, cpu, disk, peer), or `turn` (one at a time). lost_ns: waits measured around the very
 * calls, without the parts in which the thread ran or was ready to. behind: the thread that
 * kept the others waiting; does: what it did meanwhile (sleep, cpu, disk, stop, deadlock).
 */
#ifndef SHAPE_H
#define SHAPE_H

#include "common.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX_CAUSES 3
#define MAX_CREW 1100
#define MAX_CONNECTIONS 256

/* Processes measure, too, so this is shared between them. */
struct shared {
	atomic_bool over;
	_Atomic uint64_t lost_ns[MAX_CAUSES];
};

static struct shared *shared;
/* Rounds of compute() in a millisecond. */
static uint64_t rounds_in_ms;

static inline void *shared_memory(size_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("cannot share memory");
	return memory;
}

/* Every main begins here; returns how many seconds to run, the first argument. */
static inline double begin_shape(int argc, char **argv)
{
	double seconds = begin(argc, argv);

	shared = shared_memory(sizeof *shared);
	rounds_in_ms = rounds_for(MILLISECOND);
	return seconds;
}

static inline bool going(void)
{
	return !atomic_load_explicit(&shared->over, memory_order_relaxed);
}

static inline void run_for(double seconds)
{
	wait_for_end(seconds);
	atomic_store(&shared->over, true);
}

/* ---- work ---- */

static inline void sleep_ms(double ms)
{
	uint64_t ns = (uint64_t)(ms * 1e6);
	struct timespec t = { .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };

	nanosleep(&t, NULL);
}

static inline void compute_ms(double ms)
{
	compute(1, (uint64_t)(ms * (double)rounds_in_ms));
}

/* ---- waits ---- */

struct wait {
	uint64_t began, queued, ran;
};

/* How long this thread has been ready and without a CPU. */
static inline uint64_t queued_ns(void)
{
	static __thread int fd;
	static __thread pid_t owner;
	unsigned long long waited = 0;
	char text[96];
	ssize_t length;

	if (owner != gettid()) {
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		owner = gettid();
	}
	length = pread(fd, text, sizeof text - 1, 0);
	text[length > 0 ? length : 0] = 0;
	if (sscanf(text, "%*u %llu", &waited) != 1)
		die("cannot read how long a thread waited for a CPU");
	return waited;
}

static inline struct wait wait_begins(void)
{
	struct wait wait = { .queued = queued_ns(), .ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) };

	wait.began = now_ns();
	return wait;
}

/* Time since then in which this thread neither ran nor waited for a CPU. */
static inline uint64_t asleep_ns(struct wait wait)
{
	uint64_t took = now_ns() - wait.began;
	uint64_t awake = clock_ns(CLOCK_THREAD_CPUTIME_ID) - wait.ran + queued_ns() - wait.queued;

	return took > awake ? took - awake : 0;
}

static inline void wait_ends(struct wait wait, int cause)
{
	shared->lost_ns[cause] += asleep_ns(wait);
}

static inline void lock_timed(pthread_mutex_t *lock, int cause)
{
	struct wait wait = wait_begins();

	pthread_mutex_lock(lock);
	wait_ends(wait, cause);
}

/* ---- the disk ---- */

#define DISK_BLOCK (2UL << 20)

/* A file on a disk that is read and written past the page cache. */
static inline int disk_file(void)
{
	int file = nameless_file("/var/tmp");

	fill_file(file, DISK_BLOCK);
	if (fsync(file) || fcntl(file, F_SETFL, O_DIRECT))
		die("no disk that can be read past the page cache (set TMPDIR)");
	return file;
}

static inline void *disk_block(void)
{
	static __thread void *block;

	if (!block)
		block = mmap(NULL, DISK_BLOCK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return block;
}

/* Writes through to the disk until it has waited for `ms`. */
static inline void write_disk_ms(int file, double ms)
{
	struct wait wait = wait_begins();

	while ((double)asleep_ns(wait) < ms * 1e6)
		if (pwrite(file, disk_block(), DISK_BLOCK, 0) < 0 || fdatasync(file))
			die("cannot write to the disk");
}

/* Reads from the disk until it has waited for `ms`. */
static inline void read_disk_ms(int file, double ms)
{
	struct wait wait = wait_begins();

	while ((double)asleep_ns(wait) < ms * 1e6)
		if (pread(file, disk_block(), DISK_BLOCK, 0) < 0)
			die("cannot read from the disk");
}

/* ---- crews ---- */

typedef void (*part)(int id);

struct member {
	pthread_t thread;
	pid_t process;
	const char *name;
	part body;
	int id;
};

static struct member crew[MAX_CREW];
static int crew_size;

static inline void *member_main(void *argument)
{
	struct member *self = argument;
	char name[32];

	snprintf(name, sizeof name, "%s-%d", self->name, self->id);
	prctl(PR_SET_NAME, name);
	self->body(self->id);
	return NULL;
}

static inline struct member *new_member(const char *name, int id, part body)
{
	if (crew_size == MAX_CREW)
		die("the crew is full");
	crew[crew_size] = (struct member){ .name = name, .id = id, .body = body };
	return &crew[crew_size++];
}

static inline void start_threads(const char *name, int count, part body)
{
	for (int i = 0; i < count; i++) {
		struct member *member = new_member(name, i, body);

		errno = pthread_create(&member->thread, NULL, member_main, member);
		if (errno)
			die("cannot start %s", name);
	}
}

static inline void member_process(void *member)
{
	member_main(member);
	_exit(0);
}

/* Before any thread is started. */
static inline void start_processes(const char *name, int count, part body)
{
	for (int i = 0; i < count; i++) {
		struct member *member = new_member(name, i, body);

		member->process = start_process(name, member_process, member);
	}
}

/*
 * Until workers wait for their first work, as those of a server that is up do. Who finds work at once
 * is not known as a worker (docs/decisions.md), so that without this the scheduler decides.
 */
static inline void until_workers_wait(void)
{
	sleep_ms(5);
}

/* Waits for all threads and processes, which end by themselves when going() says so. */
static inline void join_crew(void)
{
	for (int i = 0; i < crew_size; i++) {
		if (crew[i].process)
			waitpid(crew[i].process, NULL, 0);
		else
			pthread_join(crew[i].thread, NULL);
	}
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one))
		die("cannot move to CPU %d", cpu);
}

/* ---- local servers ---- */

/* A listening socket, AF_UNIX or AF_INET, at an address that the kernel chooses. */
static inline int open_door(int family)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un nameless = { .sun_family = AF_UNIX };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || (family == AF_UNIX ? bind(fd, (void *)&nameless, sizeof(sa_family_t))
					 : bind(fd, (void *)&loopback, sizeof loopback)) ||
	    listen(fd, 128))
		die("cannot open a local server");
	return fd;
}

static inline int enter(int door)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	int fd, on = 1;

	if (getsockname(door, (void *)&address, &length))
		die("no such server");
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (void *)&address, length))
		die("cannot enter a local server");
	if (address.ss_family == AF_INET)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

/* One request and its answer, a byte each. */
static inline void ask(int fd)
{
	char byte = '?';

	if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
		die("the server is gone");
}

/* One of this kind, as clients with an event loop wait, for whatever comes first. */
static inline void ask_by_poll(int fd, char kind)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = -1 } };

	if (write(fd, &kind, 1) != 1 || poll(fds, 2, -1) < 0 || read(fd, &kind, 1) != 1)
		die("the server is gone");
}

static inline void ask_timed(int fd, int cause)
{
	struct wait wait = wait_begins();

	ask(fd);
	wait_ends(wait, cause);
}

/* Answers the requests of all who enter, one after the other; `work` is what one takes. */
__attribute__((noreturn)) static inline void serve(int door, void (*work)(void))
{
	struct pollfd fds[MAX_CONNECTIONS] = { { .fd = door, .events = POLLIN } };
	int count = 1;

	for (;;) {
		char byte;

		if (poll(fds, (nfds_t)count, -1) < 0)
			die("poll");
		if (fds[0].revents && count < MAX_CONNECTIONS)
			fds[count++] = (struct pollfd){ .fd = accept(door, NULL, NULL), .events = POLLIN };
		for (int i = 1; i < count; i++) {
			if (!(fds[i].revents & (POLLIN | POLLHUP)))
				continue;
			fds[i].revents = 0;
			if (read(fds[i].fd, &byte, 1) != 1) {
				close(fds[i].fd);
				fds[i].fd = -1;
				continue;
			}
			work();
			if (write(fds[i].fd, &byte, 1) != 1)
				fds[i].events = 0;
		}
	}
}

/* ---- the last line ---- */

struct cause {
	const char *names, *behind, *does;
};

/* Prints the truth: none is healthy. Returns main's status. */
static inline int truth(int count, const struct cause *causes)
{
	printf("truth: healthy=%d", count == 0);
	for (int i = 0; i < count; i++)
		printf(" cause.%d=%s lost_ns.%d=%llu behind.%d=%s does.%d=%s", i, causes[i].names, i,
		       (unsigned long long)shared->lost_ns[i], i, causes[i].behind, i, causes[i].does);
	printf("\n");
	return 0;
}

#define TRUTH(...) truth((int)(sizeof((struct cause[]){ __VA_ARGS__ }) / sizeof(struct cause)), \
			 (struct cause[]){ __VA_ARGS__ })
#define HEALTHY truth(0, NULL)

#endif
