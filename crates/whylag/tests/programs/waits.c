/*
 * Every kind of wait that a program can bring about by itself, each in a thread named after it.
 * Prints for each thread: NAME=time in the waiting call, cpu.NAME and runq.NAME=CPU time and run
 * queue time of the thread by the kernel's own clocks, and its life (clock.h).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define WAIT_MS 150

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, pi_mutex;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int go;
static int empty_pipe[2], full_pipe[2], empty_socket[2], full_socket[2];
static int idle_pipe[2];
static int listener, backlog_listener, holder_fd, waiter_fd, queue;
static struct sockaddr_in busy_port;
static struct sockaddr_un listener_name, backlog_name;
static pid_t child;
static char block[1 << 20];

static void do_timer(void) { sleep_ms(WAIT_MS); }
static void do_usleep(void) { usleep(WAIT_MS * 1000); }

static void do_timerfd(void)
{
	struct itimerspec when = { .it_value = { 0, WAIT_MS * 1000000 } };
	uint64_t expirations;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	timerfd_settime(fd, 0, &when, NULL);
	if (read(fd, &expirations, sizeof expirations) < 0)
		abort();
}

static void do_mutex(void) { pthread_mutex_lock(&mutex); }
static void free_mutex(void) { pthread_mutex_unlock(&mutex); }

static void do_pi_mutex(void) { pthread_mutex_lock(&pi_mutex); }
static void free_pi_mutex(void) { pthread_mutex_unlock(&pi_mutex); }

static void do_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	while (!go)
		pthread_cond_wait(&cond, &cond_mutex);
	pthread_mutex_unlock(&cond_mutex);
}

static void free_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	go = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&cond_mutex);
}

static void do_poll(void)
{
	struct pollfd fd = { .fd = idle_pipe[0], .events = POLLIN };

	poll(&fd, 1, WAIT_MS);
}

static void do_select(void)
{
	struct timeval limit = { 0, WAIT_MS * 1000 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(idle_pipe[0], &fds);
	select(idle_pipe[0] + 1, &fds, NULL, NULL, &limit);
}

static void do_bare_poll(void)
{
	poll(NULL, 0, WAIT_MS);
}

static void do_bare_select(void)
{
	select(0, NULL, NULL, NULL, &(struct timeval){ 0, WAIT_MS * 1000 });
}

static void do_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	epoll_ctl(fd, EPOLL_CTL_ADD, idle_pipe[0], &event);
	epoll_wait(fd, &event, 1, WAIT_MS);
}

static void must(ssize_t result)
{
	if (result < 0) {
		perror("waits");
		exit(2);
	}
}

static void do_pipe_read(void) { must(read(empty_pipe[0], block, 1)); }
static void free_pipe_read(void) { must(write(empty_pipe[1], "x", 1)); }
static void do_pipe_write(void) { must(write(full_pipe[1], block, 4096)); }
static void free_pipe_write(void) { must(read(full_pipe[0], block, 65536)); }
static void do_recv(void) { must(recv(empty_socket[0], block, 1, 0)); }
static void free_recv(void) { must(send(empty_socket[1], "x", 1, 0)); }
static void do_send(void) { must(send(full_socket[1], block, 4096, 0)); }

static void free_send(void)
{
	while (recv(full_socket[0], block, sizeof block, MSG_DONTWAIT) > 0)
		;
}

static void do_accept(void) { must(accept(listener, NULL, NULL)); }

static void free_accept(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	must(connect(fd, (struct sockaddr *)&listener_name, sizeof listener_name));
}

static void do_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	must(connect(fd, (struct sockaddr *)&backlog_name, sizeof backlog_name));
}

static void free_connect(void) { must(accept(backlog_listener, NULL, NULL)); }

static int begin_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect(fd, (struct sockaddr *)&busy_port, sizeof busy_port) && errno != EINPROGRESS)
		abort();
	return fd;
}

/* Nothing answers what is sent to a port without room: the next try would be a second later. */
static void do_timed_connect(void)
{
	struct pollfd connected = { .fd = begin_connect(), .events = POLLOUT };

	if (poll(&connected, 1, WAIT_MS))
		abort();
}

/* A backlog of 0 takes one connection; what comes then has no answer. */
static void fill_port(void)
{
	socklen_t length = sizeof busy_port;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	busy_port.sin_family = AF_INET;
	busy_port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(bind(fd, (struct sockaddr *)&busy_port, length));
	must(listen(fd, 0));
	must(getsockname(fd, (struct sockaddr *)&busy_port, &length));
	begin_connect();
	sleep_ms(10);
}
static void do_child(void) { must(waitpid(child, NULL, 0)); }
static void free_child(void) { kill(child, SIGKILL); }
static void do_flock(void) { must(flock(waiter_fd, LOCK_EX)); }
static void free_flock(void) { must(flock(holder_fd, LOCK_UN)); }
static void do_message(void) { must(msgrcv(queue, block, 8, 0, 0)); }

static void free_message(void)
{
	long message[2] = { 1, 0 };

	must(msgsnd(queue, message, 8, 0));
}

static void nothing(void) { }

static struct wait {
	const char *name;
	void (*wait)(void);
	void (*release)(void);
	pthread_t thread;
	uint64_t waited_ns, cpu_ns, run_queue_ns;
	struct life life;
} waits[] = {
	{ .name = "timer", .wait = do_timer, .release = nothing },
	{ .name = "usleep", .wait = do_usleep, .release = nothing },
	{ .name = "timerfd", .wait = do_timerfd, .release = nothing },
	{ .name = "poll", .wait = do_poll, .release = nothing },
	{ .name = "select", .wait = do_select, .release = nothing },
	{ .name = "bare_poll", .wait = do_bare_poll, .release = nothing },
	{ .name = "bare_select", .wait = do_bare_select, .release = nothing },
	{ .name = "epoll", .wait = do_epoll, .release = nothing },
	{ .name = "mutex", .wait = do_mutex, .release = free_mutex },
	{ .name = "pi_mutex", .wait = do_pi_mutex, .release = free_pi_mutex },
	{ .name = "cond", .wait = do_cond, .release = free_cond },
	{ .name = "pipe_read", .wait = do_pipe_read, .release = free_pipe_read },
	{ .name = "pipe_write", .wait = do_pipe_write, .release = free_pipe_write },
	{ .name = "recv", .wait = do_recv, .release = free_recv },
	{ .name = "send", .wait = do_send, .release = free_send },
	{ .name = "accept", .wait = do_accept, .release = free_accept },
	{ .name = "connect", .wait = do_connect, .release = free_connect },
	{ .name = "timed_connect", .wait = do_timed_connect, .release = nothing },
	{ .name = "child", .wait = do_child, .release = free_child },
	{ .name = "flock", .wait = do_flock, .release = free_flock },
	{ .name = "message", .wait = do_message, .release = free_message },
};
#define WAITS (sizeof waits / sizeof *waits)

static void *thread_main(void *argument)
{
	struct wait *self = argument;
	uint64_t began;

	self->life.began_ns = now_ns();
	pthread_setname_np(pthread_self(), self->name);
	began = now_ns();
	self->wait();
	self->waited_ns = now_ns() - began;
	self->run_queue_ns = run_queue_ns();
	self->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	self->life.ended_ns = now_ns();
	return NULL;
}

/* An abstract UNIX address of this process's own. */
static int listening(struct sockaddr_un *name, const char *what, int backlog)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memset(name, 0, sizeof *name);
	name->sun_family = AF_UNIX;
	snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "whylag-%s-%d", what, getpid());
	must(bind(fd, (struct sockaddr *)name, sizeof *name));
	must(listen(fd, backlog));
	return fd;
}

static void fill(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, block, 4096) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void prepare(void)
{
	pthread_mutexattr_t inherit;
	char path[] = "/tmp/whylag-waits-XXXXXX";

	must(pipe(empty_pipe) | pipe(full_pipe) | pipe(idle_pipe));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, empty_socket));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, full_socket));
	fill(full_pipe[1]);
	fill(full_socket[1]);
	listener = listening(&listener_name, "accept", 8);
	/* A backlog of 0 takes one connection; the next has to wait. */
	backlog_listener = listening(&backlog_name, "connect", 0);
	do_connect();
	fill_port();
	pthread_mutex_lock(&mutex);
	pthread_mutexattr_init(&inherit);
	pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi_mutex, &inherit);
	pthread_mutex_lock(&pi_mutex);
	holder_fd = mkstemp(path);
	waiter_fd = open(path, O_RDWR);
	unlink(path);
	must(flock(holder_fd, LOCK_EX));
	queue = msgget(IPC_PRIVATE, 0600);
	must(queue);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
}

int main(void)
{
	prepare();
	for (size_t i = 0; i < WAITS; i++) {
		waits[i].life.made_ns = now_ns();
		pthread_create(&waits[i].thread, NULL, thread_main, &waits[i]);
	}
	sleep_ms(WAIT_MS);
	for (size_t i = 0; i < WAITS; i++)
		waits[i].release();
	for (size_t i = 0; i < WAITS; i++) {
		struct wait *one = &waits[i];

		pthread_join(one->thread, NULL);
		print_life(one->name, &one->life);
		printf("%s=%lu cpu.%s=%lu runq.%s=%lu\n", one->name, one->waited_ns, one->name,
		       one->cpu_ns, one->name, one->run_queue_ns);
	}
	msgctl(queue, IPC_RMID, NULL);
	return 0;
}
