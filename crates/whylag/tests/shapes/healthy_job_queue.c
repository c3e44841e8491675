/*
 * Healthy: a queue in a process of its own hands jobs to two workers, which ask for one, compute for
 * 5 ms with it, and ask for the next. Another process sends a job every 20 ms: there is nothing to do
 * in between, for the queue nor for the workers.
 */
#include "shape.h"

#define WORKERS 2

static int door;

/* Gives a job that has come to the worker that has asked first; one is always there in time. */
__attribute__((noreturn)) static void hand_out_jobs(void *unused)
{
	struct pollfd fds[WORKERS + 2] = { { .fd = door, .events = POLLIN } };
	int count = 1, waiting[WORKERS], asked = 0, jobs = 0;

	for (;;) {
		if (poll(fds, (nfds_t)count, -1) < 0)
			die("poll");
		if (fds[0].revents && count < WORKERS + 2)
			fds[count++] = (struct pollfd){ .fd = accept(door, NULL, NULL), .events = POLLIN };
		for (int i = 1; i < count; i++) {
			char kind;

			if (!(fds[i].revents & (POLLIN | POLLHUP)))
				continue;
			fds[i].revents = 0;
			if (read(fds[i].fd, &kind, 1) != 1) {
				close(fds[i].fd);
				fds[i].fd = -1;
			} else if (kind == 'w') {
				waiting[asked++] = fds[i].fd;
			} else {
				jobs++;
				if (write(fds[i].fd, &kind, 1) != 1)
					die("the producer is gone");
			}
		}
		for (; jobs && asked; jobs--) {
			if (write(waiting[0], "j", 1) != 1)
				die("a worker is gone");
			memmove(waiting, waiting + 1, (size_t)--asked * sizeof *waiting);
		}
	}
}

static void ask_for(int queue, char kind)
{
	if (write(queue, &kind, 1) != 1 || read(queue, &kind, 1) != 1)
		die("the queue is gone");
}

static void work_on_jobs(int id)
{
	int queue = enter(door);

	while (going()) {
		ask_for(queue, 'w');
		compute_ms(5);
	}
}

static void send_jobs(int id)
{
	int queue = enter(door);
	uint64_t next = now_ns();

	while (going()) {
		sleep_until(next += 20 * MILLISECOND);
		ask_for(queue, 'j');
	}
	/* So that the workers see that it is over. */
	for (int i = 0; i < WORKERS; i++)
		ask_for(queue, 'j');
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	start_process("queue", hand_out_jobs, NULL);
	start_processes("worker", WORKERS, work_on_jobs);
	start_processes("producer", 1, send_jobs);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
