/*
 * A server of UDP with one reader and two workers, the last packet first, and eight clients on loopback in a
 * process of their own, each with a socket. A line for each request as of requests.c: how long it took
 * until it was read, and until its answer had been sent, by the one clock of all, in ns.
 *
 *   udp_pool REQUESTS    of each client
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define CLIENTS	8
#define WORKERS	2
#define PORT	5301	/* below those that the kernel gives to clients */

struct job {
	uint64_t sent, read;
	struct sockaddr_in from;
};

static struct sockaddr_in address;
static int server, requests, waiting_count;
static struct job waiting[CLIENTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void *client(void *unused)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint64_t sent;

	check(!connect(fd, (void *)&address, sizeof(address)), "connect");
	for (int i = 0; i < requests; i++) {
		sent = now_ns();
		check(send(fd, &sent, sizeof(sent), 0) > 0, "send");
		check(recv(fd, &sent, sizeof(sent), 0) > 0, "recv");
	}
	return unused;
}

static void run_clients(void)
{
	pthread_t threads[CLIENTS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < CLIENTS; i++)
		check(!pthread_create(&threads[i], NULL, client, NULL), "pthread_create");
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Every other answer goes out by sendmsg. */
static void answer(struct job *job, int by_message)
{
	struct iovec data = { &job->sent, sizeof(job->sent) };
	struct msghdr message = { .msg_name = &job->from, .msg_namelen = sizeof(job->from),
				  .msg_iov = &data, .msg_iovlen = 1 };

	if (by_message)
		check(sendmsg(server, &message, 0) > 0, "sendmsg");
	else
		check(sendto(server, &job->sent, sizeof(job->sent), 0, (void *)&job->from,
			     sizeof(job->from)) > 0, "sendto");
}

static void *worker(void *unused)
{
	struct job job;

	for (int i = 0;; i++) {
		pthread_mutex_lock(&lock);
		while (!waiting_count)
			pthread_cond_wait(&filled, &lock);
		job = waiting[--waiting_count];
		pthread_mutex_unlock(&lock);
		sleep_ms(8);
		/* In one piece, and before the client can end. */
		pthread_mutex_lock(&lock);
		answer(&job, i % 2);
		printf("packet %llu %llu %d\n", (unsigned long long)(job.read - job.sent),
		       (unsigned long long)(now_ns() - job.sent), (int)syscall(SYS_gettid));
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	socklen_t length;
	pthread_t thread;
	struct job job;
	pid_t clients;

	requests = argc > 1 ? atoi(argv[1]) : 0;
	check(requests > 0, "udp_pool REQUESTS");
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(PORT);
	server = socket(AF_INET, SOCK_DGRAM, 0);
	check(!bind(server, (void *)&address, sizeof(address)), "bind");
	/* The recorder has found the socket when the first request comes. */
	sleep_ms(300);
	clients = fork();
	if (!clients)
		run_clients();
	for (int i = 0; i < WORKERS; i++)
		check(!pthread_create(&thread, NULL, worker, NULL), "pthread_create");
	for (int i = 0; i < CLIENTS * requests; i++) {
		length = sizeof(job.from);
		check(recvfrom(server, &job.sent, sizeof(job.sent), 0, (void *)&job.from, &length) > 0,
		      "recvfrom");
		job.read = now_ns();
		pthread_mutex_lock(&lock);
		waiting[waiting_count++] = job;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	waitpid(clients, NULL, 0);
	pthread_mutex_lock(&lock);
	fflush(stdout);
	return 0;
}
