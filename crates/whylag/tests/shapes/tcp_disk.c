/*
 * Three threads ask a server on loopback, which writes through to the disk for each.
 */
#include "shape.h"

static int door;
static int file;

static void answer(void)
{
	struct wait wait = wait_begins();

	write_disk_ms(file, 3);
	wait_ends(wait, 1);
}

static void serve_all(void *nothing)
{
	serve(door, answer);
}

static void request(int id)
{
	int server = enter(door);

	while (going()) {
		ask_timed(server, 0);
		sleep_ms(2);
	}
	close(server);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	door = open_door(AF_INET);
	file = disk_file();
	start_process("key-store", serve_all, NULL);
	start_threads("login", 3, request);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,disk,fsync-journal", "key-store", "disk" },
		     { "disk,fsync-journal", "key-store", "disk" });
}
