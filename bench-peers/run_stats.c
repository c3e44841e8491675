/*
 * The kernel's own statistics of BPF programs: has it time all runs until the end of standard
 * input, and prints of each program NAME, runs and nanoseconds.
 *
 *   run_stats NAME...
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static void print(int program, int count, char **names)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { 0 };
	int i;

	attr.info.bpf_fd = program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (unsigned long)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		return;
	for (i = 0; i < count; i++)
		if (!strcmp(info.name, names[i]))
			printf("%s %llu %llu\n", info.name, info.run_cnt, info.run_time_ns);
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { 0 };
	int timing, program;
	char byte;

	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	timing = bpf(BPF_ENABLE_STATS, &attr);
	if (timing < 0) {
		perror("run_stats: BPF_ENABLE_STATS");
		return 1;
	}
	while (read(0, &byte, 1) > 0)
		;
	memset(&attr, 0, sizeof(attr));
	while (!bpf(BPF_PROG_GET_NEXT_ID, &attr)) {
		union bpf_attr get = { 0 };

		get.prog_id = attr.next_id;
		program = bpf(BPF_PROG_GET_FD_BY_ID, &get);
		if (program >= 0) {
			print(program, argc - 1, argv + 1);
			close(program);
		}
		attr.start_id = attr.next_id;
	}
	close(timing);
	return 0;
}
