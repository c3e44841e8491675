/*
 * Healthy: a process reads what one child writes into a pipe, a line each 4 ms, and writes it into the pipe of
 * another child, which keeps it. It asks neither of them for anything.
 */
#include "shape.h"

enum { SOURCE, KEEPER, CHILDREN };

static int lines[2], kept[2];

static void child(int id)
{
	char byte = '.';

	if (id == KEEPER) {
		while (read(kept[0], &byte, 1) == 1 && byte == '.')
			compute_ms(0.05);
		return;
	}
	while (going()) {
		sleep_ms(4);
		if (write(lines[1], &byte, 1) != 1)
			die("nobody reads");
	}
	byte = 'q';
	if (write(lines[1], &byte, 1) != 1)
		die("nobody reads");
}

static void relay(int id)
{
	char byte;

	(void)id;
	do {
		if (read(lines[0], &byte, 1) != 1 || write(kept[1], &byte, 1) != 1)
			die("a child is gone");
	} while (byte == '.');
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe2(lines, O_CLOEXEC) || pipe2(kept, O_CLOEXEC))
		die("pipe");
	start_processes("stage", CHILDREN, child);
	start_threads("relay", 1, relay);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
