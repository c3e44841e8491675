/*
 * A worker prints to a terminal, one line at a time; the other end,
 * a process of its own, reads 256 bytes every 4 ms.
 */
#include "shape.h"

static int terminal, other_end;

static void show(void *nothing)
{
	char text[256];

	close(terminal);
	while (read(other_end, text, sizeof text) > 0)
		sleep_ms(4);
}

static void print_lines(int id)
{
	char line[512];

	memset(line, 'l', sizeof line);
	line[sizeof line - 1] = '\n';
	while (going()) {
		struct wait wait = wait_begins();

		if (write(terminal, line, sizeof line) < 0)
			die("the terminal is gone");
		wait_ends(wait, 0);
		sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);
	char name[64];

	other_end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (other_end < 0 || grantpt(other_end) || unlockpt(other_end) ||
	    ptsname_r(other_end, name, sizeof name))
		die("no terminal");
	terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0)
		die("no terminal");
	start_process("display", show, NULL);
	start_threads("printer", 1, print_lines);
	run_for(seconds);
	join_crew();
	return TRUTH({ "blocked-log-pipe", "display", "sleep" });
}
