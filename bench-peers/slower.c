/* slower N COMMAND WORD...: runs the command with every getppid() slower by N instructions of a
 * seccomp filter. A real slowdown of one system call, whose size can be chosen: what a benchmark
 * has to find. Other system calls pass the filter with a look at their number. */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes 4096 (BPF_MAXINSNS), some are needed around the padding. */
enum { MOST = 4000 };

int main(int argc, char **argv)
{
	static struct sock_filter code[MOST + 8];
	char *end;
	unsigned short n = 0;
	long padding = argc > 2 ? strtol(argv[1], &end, 10) : -1;

	if (padding < 1 || padding > MOST || *end) {
		fprintf(stderr, "usage: slower N COMMAND WORD...   (N from 1 to %d)\n", MOST);
		return 2;
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* With an addition in it the kernel cannot know the answer beforehand, and runs it all each
	 * time (seccomp_is_const_allow); each one waits for the one before. */
	for (long i = 0; i < padding; i++)
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 3);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	struct sock_fprog program = { .len = n, .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "slower: no seccomp filter: %s\n", strerror(errno));
		return 1;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "slower: %s: %s\n", argv[2], strerror(errno));
	return 1;
}
