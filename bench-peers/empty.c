/* empty TRACEPOINT... -- COMMAND...: runs a command with an empty BPF program on each raw
 * tracepoint, the least that any BPF tool on the same tracepoints can cost.
 *
 * The programs go straight through bpf(2): two instructions need no compiler and no loader. A
 * tp_btf program is called by the kernel in the same way as these. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load_empty_program(void)
{
	static const struct bpf_insn return_0[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)return_0;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t)"GPL";
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach(int program, const char *tracepoint)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)tracepoint;
	attr.raw_tracepoint.prog_fd = program;
	return bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

int main(int argc, char **argv)
{
	int i, status;
	pid_t child;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		/* Both descriptors stay open, and so the program attached, until the end. */
		int program = load_empty_program();

		if (program < 0 || attach(program, argv[i]) < 0) {
			fprintf(stderr, "empty: %s: %s\n", argv[i], strerror(errno));
			return 1;
		}
	}
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: empty TRACEPOINT... -- COMMAND...\n");
		return 2;
	}
	child = fork();
	if (child == 0) {
		execvp(argv[i + 1], &argv[i + 1]);
		fprintf(stderr, "empty: %s: %s\n", argv[i + 1], strerror(errno));
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		fprintf(stderr, "empty: %s\n", strerror(errno));
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
