/* Three threads ask a server by System V messages; it sleeps for 5 ms in each request. */
#include "shape.h"
#include <sys/ipc.h>
#include <sys/msg.h>

#define REQUEST 1
#define ANSWER 100

struct message {
	long type;
	int from;
};

static int queue;

static void post(int id, long type)
{
	struct message message = { type, id };

	if (msgsnd(queue, &message, sizeof message.from, 0))
		die("msgsnd");
}

static int receive(long type)
{
	struct message message;

	if (msgrcv(queue, &message, sizeof message.from, type, 0) < 0)
		die("msgrcv");
	return message.from;
}

static void serve_messages(void *nothing)
{
	for (;;) {
		int from = receive(REQUEST);

		sleep_ms(5);
		post(from, ANSWER + from);
	}
}

static void request(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		post(id, REQUEST);
		receive(ANSWER + id);
		wait_ends(wait, 0);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	pid_t server;

	queue = msgget(IPC_PRIVATE, 0600);
	if (queue < 0)
		die("msgget");
	server = start_process("tax-server", serve_messages, NULL);
	until_workers_wait();
	start_threads("invoice", 3, request);
	run_for(seconds);
	join_crew();
	end_process(server);
	msgctl(queue, IPC_RMID, NULL);
	return TRUTH({ "turn,peer,timer", "tax-server", "sleep" });
}
