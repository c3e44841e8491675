/*
 * A server with an event loop, which answers none of its requests itself: it puts each connection
 * with a request into a line, and answers when a thread gives it back through an eventfd.
 */
#ifndef LOOP_AND_THREADS_H
#define LOOP_AND_THREADS_H

#include "shape.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define CLIENTS 10

static int door, given_back;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int line[CLIENTS], line_length, done[CLIENTS], done_length;
static bool closed;

/* The connection that has waited longest; waits for one if none is there. -1: the server ends. */
static inline int take(void)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	while (!line_length && !closed)
		pthread_cond_wait(&not_empty, &lock);
	if (line_length) {
		fd = line[0];
		memmove(line, line + 1, (size_t)--line_length * sizeof *line);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

static inline void give_back(int fd)
{
	pthread_mutex_lock(&lock);
	done[done_length++] = fd;
	pthread_mutex_unlock(&lock);
	if (eventfd_write(given_back, 1))
		die("eventfd");
}

static void put_in_line(int fd)
{
	pthread_mutex_lock(&lock);
	line[line_length++] = fd;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void answer_done(void)
{
	eventfd_t value;
	char byte = '.';

	eventfd_read(given_back, &value);
	pthread_mutex_lock(&lock);
	while (done_length)
		if (write(done[--done_length], &byte, 1) != 1)
			die("the client is gone");
	pthread_mutex_unlock(&lock);
}

static void loop(int id)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = CLIENTS;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = door };

	epoll_ctl(epoll, EPOLL_CTL_ADD, door, &event);
	event.data.fd = given_back;
	epoll_ctl(epoll, EPOLL_CTL_ADD, given_back, &event);
	while (left && epoll_wait(epoll, &event, 1, -1) == 1) {
		int fd = event.data.fd;
		char byte;

		if (fd == door) {
			event = (struct epoll_event){ .events = EPOLLIN, .data.fd = accept(door, NULL, NULL) };
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (fd == given_back) {
			answer_done();
		} else if (read(fd, &byte, 1) == 1) {
			put_in_line(fd);
		} else {
			close(fd);
			left--;
		}
	}
}

static void request(int id)
{
	int fd = enter(door);

	while (going()) {
		ask_by_poll(fd, '?');
		sleep_ms(2);
	}
	close(fd);
}

/* `body` is what each of the threads does until take() gives it nothing more. */
static inline void run_server(double seconds, const char *name, int threads, part body)
{
	door = open_door(AF_INET);
	given_back = eventfd(0, EFD_CLOEXEC);
	start_processes("client", CLIENTS, request);
	start_threads(name, threads, body);
	until_workers_wait();
	start_threads("event-loop", 1, loop);
	run_for(seconds);
	for (int i = 0; i < crew_size; i++)
		if (crew[i].process)
			waitpid(crew[i].process, NULL, 0);
	pthread_mutex_lock(&lock);
	closed = true;
	pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < crew_size; i++)
		if (!crew[i].process)
			pthread_join(crew[i].thread, NULL);
}

#endif
