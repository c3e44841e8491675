/*
 * A server on loopback that knows how long its requests waited and were worked
 * on, and its client, a process of its own. Each request carries when it was
 * sent, by the same clock. One line for each request: what it was, how long it
 * took from then until it had been read, and until its answer had been sent, in
 * ns, and the thread that sent it.
 *
 *   requests KIND REQUESTS [PATH]    KIND as below; an AF_UNIX socket if there is a path
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS	8
#define MS	1000000ull

struct request {
	uint64_t number, sent;
	uint64_t read;		/* by the server */
	int fd;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void spin(uint64_t ns)
{
	uint64_t end = now() + ns;

	while (now() < end)
		;
}

static void nap(uint64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

/* ---- sockets ---- */

static int type = SOCK_STREAM;
static struct sockaddr_storage address;
static socklen_t address_length;

static int new_socket(void)
{
	int fd = socket(address.ss_family, type, 0), on = 1;

	check(fd >= 0, "socket");
	if (address.ss_family == AF_INET)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static int listening(const char *path)
{
	struct sockaddr_un *un = (void *)&address;
	struct sockaddr_in *in = (void *)&address;
	int fd;

	if (path) {
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
		address_length = sizeof(*un);
	} else {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		/* Below those that the kernel gives to clients: who serves packets is known by it. */
		in->sin_port = htons(type == SOCK_DGRAM ? 5302 : 0);
		address_length = sizeof(*in);
	}
	fd = new_socket();
	check(!bind(fd, (void *)&address, address_length), "bind");
	check(type == SOCK_DGRAM || !listen(fd, 64), "listen");
	check(!getsockname(fd, (void *)&address, &address_length), "getsockname");
	return fd;
}

static int connected(void)
{
	int fd = new_socket();

	check(!connect(fd, (void *)&address, address_length), "connect");
	return fd;
}

static void send_request(int fd, uint64_t number)
{
	struct request r = { .number = number, .sent = now() };

	check(send(fd, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r), "send");
}

static void await_answer(int fd)
{
	uint64_t answer;

	check(recv(fd, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer), "recv");
}

static int read_request(int fd, struct request *r)
{
	ssize_t n = recv(fd, r, sizeof(*r), MSG_WAITALL);

	r->read = now();
	r->fd = fd;
	return n == sizeof(*r);
}

static void answer(const struct request *r, const char *kind)
{
	uint64_t at;

	check(send(r->fd, &r->sent, sizeof(r->sent), MSG_NOSIGNAL) == sizeof(r->sent), "answer");
	at = now();
	printf("%s %llu %llu %d\n", kind, (unsigned long long)(r->read - r->sent),
	       (unsigned long long)(at - r->sent), (int)syscall(SYS_gettid));
}

/* ---- clients: a process of its own, one thread for each connection ---- */

static int requests, ahead = 1;
static uint64_t pause_ns;

static void *client(void *unused)
{
	int fd = connected(), sent = 0, answered = 0;

	(void)unused;
	while (answered < requests) {
		while (sent < requests && sent < answered + ahead)
			send_request(fd, sent++);
		await_answer(fd);
		answered++;
		if (pause_ns)
			nap(pause_ns + rand() % pause_ns);
	}
	close(fd);
	return NULL;
}

static pid_t start_clients(int count)
{
	pthread_t threads[CLIENTS];
	pid_t pid = fork();
	int i;

	check(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < count; i++)
		check(!pthread_create(&threads[i], NULL, client, NULL), "pthread_create");
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* ---- servers ---- */

typedef void handler(struct request *r);

/* One thread for all connections, as in Redis or nginx. */
static void event_loop(int listener, int count, handler *handle)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, ready[CLIENTS];
	int epoll = epoll_create1(0), open = 0, closed = 0, i, n;
	struct request r;

	check(!epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
	while (closed < count) {
		n = epoll_wait(epoll, ready, CLIENTS, -1);
		for (i = 0; i < n; i++) {
			int fd = ready[i].data.fd;

			if (fd == listener) {
				event.data.fd = accept(listener, NULL, NULL);
				check(event.data.fd >= 0, "accept");
				check(!epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event), "add");
				open++;
			} else if (read_request(fd, &r)) {
				handle(&r);
			} else {
				close(fd);
				closed++;
			}
		}
	}
	(void)open;
}

/* The same work for packets of all clients on one socket. */
static void packets(int fd, int count)
{
	struct sockaddr_storage from;
	struct request r;
	socklen_t length;
	uint64_t at;
	int i;

	for (i = 1; i <= count; i++) {
		length = sizeof(from);
		check(recvfrom(fd, &r, sizeof(r), 0, (void *)&from, &length) == sizeof(r), "packet");
		r.read = now();
		spin(i % 100 ? MS : 20 * MS);
		check(sendto(fd, &r.sent, sizeof(r.sent), 0, (void *)&from, length) > 0, "sendto");
		at = now();
		printf("packet %llu %llu %d\n", (unsigned long long)(r.read - r.sent),
		       (unsigned long long)(at - r.sent), (int)syscall(SYS_gettid));
	}
}

/* A millisecond of work each, and of one in a hundred 20 ms: behind it others wait. */
static void work(struct request *r)
{
	static int number;
	int is_long = ++number % 100 == 0;

	spin(is_long ? 20 * MS : MS);
	answer(r, is_long ? "long" : "short");
}

/* ---- one thread reads, another works ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct request waiting[CLIENTS];
static int waiting_count;

static void *worker(void *unused)
{
	struct request r;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!waiting_count)
			pthread_cond_wait(&filled, &lock);
		r = waiting[--waiting_count];
		pthread_mutex_unlock(&lock);
		nap(8 * MS);
		answer(&r, "handed");
	}
	return NULL;
}

static void hand_over(struct request *r)
{
	pthread_mutex_lock(&lock);
	waiting[waiting_count++] = *r;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

/* ---- long polls: answered when something comes on another connection ---- */

static struct request held[CLIENTS];
static int held_count;

static void hold(struct request *r)
{
	if (r->number % 2) {
		while (held_count)
			answer(&held[--held_count], "held");
		answer(r, "short");
	} else {
		held[held_count++] = *r;
	}
}

/* Two connections: the first asks for what the second brings, 150 ms later. */
static pid_t start_pollers(void)
{
	pid_t pid = fork();
	int polls, brings, i;

	check(pid >= 0, "fork");
	if (pid)
		return pid;
	polls = connected();
	brings = connected();
	for (i = 0; i < requests; i++) {
		send_request(polls, 0);
		nap(150 * MS);
		send_request(brings, 1);
		await_answer(brings);
		await_answer(polls);
	}
	_exit(0);
}

/* ---- calls: a peer that takes its time ---- */

static int peer;

static pid_t start_peer(int listener)
{
	pid_t pid = fork();
	struct request r;
	int fd;

	check(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = accept(listener, NULL, NULL);
	while (read_request(fd, &r)) {
		nap(12 * MS);
		check(send(fd, &r.sent, sizeof(r.sent), MSG_NOSIGNAL) > 0, "send");
	}
	_exit(0);
}

static void ask_peer(struct request *r)
{
	uint64_t before = now();

	send_request(peer, r->number);
	await_answer(peer);
	printf("call %llu 0 0\n", (unsigned long long)(now() - before));
	answer(r, "short");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	int listener, i, connections = CLIENTS;
	handler *handle = work;
	pthread_t thread;
	pid_t clients = 0;

	requests = argc > 2 ? atoi(argv[2]) : 0;
	check(requests > 0, "requests KIND REQUESTS [PATH]");
	if (!strcmp(kind, "call")) {
		listener = listening(NULL);
		start_peer(listener);
		peer = connected();
		close(listener);
		memset(&address, 0, sizeof(address));
	}
	if (!strcmp(kind, "packets"))
		type = SOCK_DGRAM;
	listener = listening(argc > 3 ? argv[3] : NULL);
	/* The recorder has found what listens when the first request comes. */
	nap(300 * MS);
	if (!strcmp(kind, "loop") || !strcmp(kind, "packets")) {
		pause_ns = 12 * MS;
	} else if (!strcmp(kind, "handed")) {
		pause_ns = MS;
		handle = hand_over;
		for (i = 0; i < 2; i++)
			check(!pthread_create(&thread, NULL, worker, NULL), "pthread_create");
	} else if (!strcmp(kind, "ahead")) {
		ahead = 4;
	} else if (!strcmp(kind, "held")) {
		handle = hold;
		connections = 2;
		clients = start_pollers();
	} else if (!strcmp(kind, "call")) {
		pause_ns = MS;
		handle = ask_peer;
		connections = 2;
	} else {
		check(0, kind);
	}
	if (!clients)
		clients = start_clients(connections);
	if (type == SOCK_DGRAM)
		packets(listener, connections * requests);
	else
		event_loop(listener, connections, handle);
	fflush(stdout);
	kill(clients, SIGKILL);
	waitpid(clients, NULL, 0);
	return 0;
}
