/*
 * A known number of system calls, some of them in a child process. Prints nothing: the counts are
 * compared with those of strace.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void times(int n, long number, long a, long b, long c)
{
	while (n--)
		syscall(number, a, b, c);
}

int main(void)
{
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	char buffer[64];
	struct stat status;
	pid_t child;

	times(1234, SYS_getppid, 0, 0, 0);
	times(777, SYS_read, zero, (long)buffer, sizeof buffer);
	times(555, SYS_write, null, (long)buffer, sizeof buffer);
	times(333, SYS_stat, (long)"/nonexistent", (long)&status, 0);
	times(3, SYS_sync_file_range, -1, 0, 0);
	child = fork();
	if (child == 0) {
		times(4321, SYS_getuid, 0, 0, 0);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
