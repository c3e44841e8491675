/* Six functions of the C library, by number; imported, and bound by their first call (-z lazy). */
#include <sched.h>
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
