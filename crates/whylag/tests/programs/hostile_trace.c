/*
 * hostile_trace HOW: a trace in /dev/shm/whylag-UID that costs its reader as
 * much as the format lets it (crates/trace/src/layout.rs). Prints a line when
 * it is there, and changes it all the time until it is killed.
 *
 *   strides     entries of 80 MB
 *   rings       a ring of 128 MiB, all of it new at each look
 *   histograms  1,000 blocks of histograms without an empty bucket
 *   nothing     no trace at all: for comparison
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 1, FLOWS, THREADS, RECENT, SLOW, HISTOGRAMS };

static const uint64_t LENGTH = 256 << 20;
static const uint64_t BLOCK = 64 + 28 * 8512;

static char *file;
static uint64_t used = 4096;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put32(uint64_t at, uint32_t value)
{
	memcpy(file + at, &value, 4);
}

static void put64(uint64_t at, uint64_t value)
{
	memcpy(file + at, &value, 8);
}

/* A section at the end of those before it; gives its offset. */
static uint64_t section(int kind, uint32_t stride, uint64_t entries)
{
	uint64_t at = 112 + (kind - 1) * 32, offset = used;

	put32(at, kind);
	put32(at + 4, stride);
	put64(at + 8, entries);
	put64(at + 16, offset);
	put64(at + 24, stride * entries);
	used = (used + stride * entries + 63) & ~63ull;
	if (used > LENGTH)
		exit(1);
	return offset;
}

static uint64_t start_of_process(void)
{
	char line[4096], *field;
	FILE *stat = fopen("/proc/self/stat", "r");
	int i;

	if (!fgets(line, sizeof(line), stat))
		die("stat");
	field = strrchr(line, ')');
	for (i = 0; i < 20; i++)
		field = strchr(field + 1, ' ');
	return strtoull(field, NULL, 10);
}

static void header(uint64_t start)
{
	struct timespec now;
	struct stat namespace;
	FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "r");

	clock_gettime(CLOCK_MONOTONIC, &now);
	memcpy(file, "WHYLAGT\n", 8);
	put32(8, 1);
	put32(12, 0x01020304);
	put64(16, LENGTH);
	put32(24, getpid());
	put32(28, 2);
	put64(32, start);
	if (stat("/proc/self/ns/pid", &namespace))
		die("namespace");
	put64(40, namespace.st_ino);
	if (fread(file + 48, 1, 36, boot) != 36)
		die("boot_id");
	put32(84, 1);
	put64(96, now.tv_sec * 1000000000ull + now.tv_nsec);
	put32(104, 1);
	put32(108, 6);
}

static void flow(uint64_t names, uint64_t flows)
{
	put32(names + 4, 1);
	memcpy(file + names + 8, "x", 1);
	put32(names, 1);
	put32(flows + 4, 1);
	put64(flows + 112, 1000000);
	put32(flows, 1);
}

static void make(void)
{
	char path[4096];
	uint64_t start = start_of_process();
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/whylag-%d", geteuid());
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "/dev/shm/whylag-%d/%d-%llu.trace", geteuid(), getpid(),
		 (unsigned long long)start);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, LENGTH))
		die(path);
	file = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		die("mmap");
	header(start);
}

static void ready(void)
{
	printf("ready 0\n");
	fflush(stdout);
}

static void strides(void)
{
	uint64_t names = section(NAMES, 80000000, 1);
	uint64_t flows = section(FLOWS, 80000000, 1);
	uint64_t threads = section(THREADS, 80000000, 1), count;

	section(RECENT, 512, 1);
	section(SLOW, 512, 1);
	section(HISTOGRAMS, BLOCK, 1);
	flow(names, flows);
	ready();
	for (count = 1;; count++) {
		put64(threads + 32, count);
		usleep(1000);
	}
}

static void rings(void)
{
	uint64_t names = section(NAMES, 64, 1), flows = section(FLOWS, 256, 1);
	uint64_t threads = section(THREADS, 256, 1), count;

	section(RECENT, 512, 1 << 18);
	section(SLOW, 512, 1);
	section(HISTOGRAMS, BLOCK, 1);
	flow(names, flows);
	ready();
	for (count = 1 << 18;; count += 1 << 18) {
		put64(threads + 32, count);
		usleep(1000);
	}
}

static void histograms(void)
{
	uint64_t names = section(NAMES, 64, 1), flows = section(FLOWS, 256, 1), blocks, at;
	int block, metric, bucket;

	section(THREADS, 256, 1);
	section(RECENT, 512, 1);
	section(SLOW, 512, 1);
	blocks = section(HISTOGRAMS, BLOCK, 1000);
	flow(names, flows);
	/* With all points and publishes there are histograms for each. */
	put32(flows + 8, 8);
	put32(flows + 12, 16);
	for (metric = 0; metric < 24; metric++)
		put32(flows + 16 + metric * 4, 1);
	for (block = 0; block < 1000; block++) {
		at = blocks + block * BLOCK;
		put32(at + 8, 1);
		for (metric = 0; metric < 28; metric++)
			for (bucket = 0; bucket < 1056; bucket++)
				put64(at + 64 + metric * 8512 + 64 + bucket * 8, 1);
		put32(at, 2);
	}
	ready();
	for (;;) {
		for (block = 0; block < 1000; block++)
			for (metric = 0; metric < 28; metric++) {
				at = blocks + block * BLOCK + 64 + metric * 8512;
				put64(at, *(uint64_t *)(file + at) + 1);
			}
		usleep(100000);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(how, "nothing")) {
		ready();
		for (;;)
			usleep(1000);
	}
	make();
	if (!strcmp(how, "strides"))
		strides();
	else if (!strcmp(how, "rings"))
		rings();
	else if (!strcmp(how, "histograms"))
		histograms();
	return 1;
}
