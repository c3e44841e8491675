/*
 * Healthy: four processes of a mail server accept connections in turn, by a locked file: whoever has
 * it waits for a connection. A client comes every 10 ms, and is answered at once.
 */
#include "shape.h"

static int door, turn;

static void lock_turn(short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	if (fcntl(turn, F_SETLKW, &whole))
		die("cannot lock a file");
}

static void serve_in_turn(int id)
{
	for (;;) {
		char byte;
		int fd;

		lock_turn(F_WRLCK);
		fd = accept(door, NULL, NULL);
		lock_turn(F_UNLCK);
		if (fd < 0)
			die("accept");
		if (read(fd, &byte, 1) == 1 && byte == 'q')
			_exit(0);
		compute_ms(0.2);
		if (write(fd, &byte, 1) != 1)
			die("the client is gone");
		close(fd);
	}
}

static void ask_one(char what)
{
	int fd = enter(door);
	char byte = what;

	if (write(fd, &byte, 1) != 1 || (what != 'q' && read(fd, &byte, 1) != 1))
		die("the server is gone");
	close(fd);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	uint64_t end;

	door = open_door(AF_UNIX);
	turn = nameless_file("/var/tmp");
	start_processes("smtpd", 4, serve_in_turn);
	until_workers_wait();
	end = now_ns() + (uint64_t)(seconds * SECOND);
	for (uint64_t at = now_ns(); at < end; at += 10 * MILLISECOND) {
		sleep_until(at);
		ask_one('?');
	}
	for (int i = 0; i < 4; i++)
		ask_one('q');
	join_crew();
	return HEALTHY;
}
