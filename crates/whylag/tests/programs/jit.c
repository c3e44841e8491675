/*
 * jit [NAPS]: sleeps below a function that it makes at run time and names in
 * /tmp/perf-PID.map, as just-in-time compilers do. Prints that path: whoever
 * runs it removes the file.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void nap(void)
{
	struct timespec t = { .tv_nsec = 30000000 };

	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3,
	};
	int naps = argc > 1 ? atoi(argv[1]) : 1;
	char path[64];
	FILE *map;
	void (*jitted)(void (*)(void));

	jitted = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (jitted == MAP_FAILED)
		return 1;
	memcpy((void *)jitted, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %zx made_at_run_time\n", (long)jitted, sizeof(code));
	fclose(map);
	printf("%s\n", path);
	fflush(stdout);
	while (naps-- > 0)
		jitted(nap);
	return 0;
}
