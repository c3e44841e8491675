/*
 * Three stages with pipes between: a reader, which has always more, a parser, which computes for
 * 2 ms a block, and a writer, which has nothing to do for most of the time (idle, not lost).
 */
#include "shape.h"

#define BLOCK 4096

static int raw[2], parsed[2];

static void read_input(int id)
{
	char block[BLOCK];

	memset(block, 'r', sizeof block);
	while (going()) {
		struct wait wait = wait_begins();

		if (write(raw[1], block, BLOCK) != BLOCK)
			die("the parser is gone");
		wait_ends(wait, 0);
	}
	close(raw[1]);
}

static void parse(int id)
{
	char block[BLOCK];

	while (read(raw[0], block, BLOCK) == BLOCK) {
		compute_ms(2);
		if (write(parsed[1], block, BLOCK) != BLOCK)
			die("the writer is gone");
	}
	close(parsed[1]);
}

static void write_output(int id)
{
	char block[BLOCK];

	while (read(parsed[0], block, BLOCK) == BLOCK)
		compute_ms(0.1);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	if (pipe(raw) || pipe(parsed) || fcntl(raw[1], F_SETPIPE_SZ, BLOCK) < 0)
		die("pipe");
	start_threads("read-input", 1, read_input);
	start_threads("parser", 1, parse);
	start_threads("write-output", 1, write_output);
	run_for(seconds);
	join_crew();
	return TRUTH({ "turn,peer,cpu", "parser-", "cpu" });
}
