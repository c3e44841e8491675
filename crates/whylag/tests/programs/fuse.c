/*
 * fuse FOLDER: runs code of a file on FUSE whose server has stopped answering,
 * in a mount namespace of its own. Prints a line with the server's pid when that
 * is so, and ends when it is killed, after the server. Needs /dev/fuse, which is often everybody's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char contents[16 << 20];
static size_t length;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void nap(void)
{
	struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
}

/* Runs wherever it is mapped: it needs nothing but its argument. */
__attribute__((noinline)) void attacked(void (*call)(void))
{
	call();
	__asm__ volatile("");
}

static unsigned long in_file(void *address)
{
	unsigned long start, end, offset;
	char line[8192];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    start <= (unsigned long)address && (unsigned long)address < end)
			return (unsigned long)address - start + offset;
	exit(1);
}

static void answer(int device, struct fuse_in_header *to, int error, void *data, size_t size)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + size, .error = error, .unique = to->unique,
	};
	struct iovec parts[] = { { &out, sizeof(out) }, { data, size } };

	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		die("answer");
}

static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr of = { .ino = node, .nlink = 1, .mode = S_IFDIR | 0755 };

	if (node != FUSE_ROOT_ID) {
		of.mode = S_IFREG | 0755;
		of.size = length;
		of.blocks = length / 512;
	}
	return of;
}

static void serve(int device)
{
	static char request[1 << 20];
	struct fuse_in_header *in = (void *)request;
	struct fuse_read_in *read_in = (void *)(in + 1);
	struct fuse_init_out init = {
		.major = 7, .minor = 31, .max_write = 4096, .max_readahead = 1 << 17,
	};
	struct fuse_entry_out entry = { .nodeid = 2, .attr = attributes(2) };
	struct fuse_open_out opened = { 0 };
	struct fuse_attr_out attr = { 0 };
	size_t size;

	while (read(device, request, sizeof(request)) > 0) {
		switch (in->opcode) {
		case FUSE_INIT:
			answer(device, in, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			answer(device, in, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			attr.attr = attributes(in->nodeid);
			answer(device, in, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			answer(device, in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			size = read_in->offset < length ? length - read_in->offset : 0;
			if (size > read_in->size)
				size = read_in->size;
			answer(device, in, 0, contents + read_in->offset, size);
			break;
		default:
			answer(device, in, -ENOSYS, NULL, 0);
		}
	}
	exit(0);
}

int main(int argc, char **argv)
{
	char options[256], path[4096];
	void (*mapped)(void (*)(void));
	int device, file, own = open("/proc/self/exe", O_RDONLY);
	pid_t server;
	char *map;

	if (argc < 2)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	length = read(own, contents, sizeof(contents));
	device = open("/dev/fuse", O_RDWR);
	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (mount("fuse", argv[1], "fuse", 0, options))
		die("mount");
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(device);
	}
	/* The file system ends with its server, and nobody waits for it then. */
	close(device);
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	file = open(path, O_RDONLY);
	map = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, file, 0);
	if (file < 0 || map == MAP_FAILED)
		die("file");
	mapped = (void (*)(void (*)(void)))(map + in_file((void *)attacked));
	mapped(nap);
	kill(server, SIGSTOP);
	printf("ready %x\n", server);
	fflush(stdout);
	for (;;)
		mapped(nap);
}
