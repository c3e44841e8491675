/* A System V semaphore is the lock of four processes; whoever has it sleeps for 5 ms. */
#include "shape.h"
#include <sys/ipc.h>
#include <sys/sem.h>

static int set;

static void change(short by)
{
	struct sembuf operation = { .sem_op = by };

	while (semop(set, &operation, 1))
		if (errno != EINTR)
			die("semop");
}

static void rate(int id)
{
	while (going()) {
		struct wait wait = wait_begins();

		change(-1);
		wait_ends(wait, 0);
		sleep_ms(5);
		change(1);
		sleep_ms(2);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	set = semget(IPC_PRIVATE, 1, 0600);
	if (set < 0)
		die("semget");
	change(1);
	start_processes("rater", 4, rate);
	run_for(seconds);
	join_crew();
	semctl(set, 0, IPC_RMID);
	return TRUTH({ "turn,timer", "rater-", "sleep" });
}
