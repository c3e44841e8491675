/* Calls as many of six functions as its argument says, and one more for each byte on its input. All
 * are imported and, linked with -z lazy, bound by their first call. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static void call(int n) {
	switch (n) {
	case 0: getppid(); break;
	case 1: getuid(); break;
	case 2: geteuid(); break;
	case 3: getgid(); break;
	case 4: getegid(); break;
	case 5: sched_yield(); break;
	}
}

int main(int count, char **words) {
	int next = 0, end = count > 1 ? atoi(words[1]) : 0;
	char byte;
	while (next < end)
		call(next++);
	/* Bound before anybody looks. */
	read(0, &byte, 0);
	write(1, "!", 1);
	while (read(0, &byte, 1) == 1) {
		call(next++);
		write(1, "!", 1);
	}
	return 0;
}
