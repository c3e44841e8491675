/*
 * fuse FOLDER [OVERLAY]: runs code of a file on FUSE whose server has stopped answering,
 * in a mount namespace of its own. Prints a line with the server's pid when that
 * is so, and ends when it is killed, after the server. Needs /dev/fuse, which is often everybody's.
 * With OVERLAY, another folder, the file is seen through an overlay over the first, and can
 * still be opened and looked at, but not be read; all is mounted in a user namespace of its own,
 * as anybody can.
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
/* Shared with the server: it answers everything but reads. */
static volatile int *is_silent;

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
	struct fuse_statfs_out space = { .st = { .bsize = 4096, .namelen = 255 } };
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
		case FUSE_STATFS:
			answer(device, in, 0, &space, sizeof(space));
			break;
		case FUSE_OPEN:
			/* What is in the page cache would be read without asking. */
			opened.open_flags = *is_silent ? FOPEN_DIRECT_IO : 0;
			answer(device, in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			if (*is_silent)
				break;
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

/* Two lower folders: then it needs none to write in. */
static void mount_overlay(const char *lower, const char *overlay)
{
	char options[4096];

	snprintf(options, sizeof(options), "lowerdir=%s:%s", lower, overlay);
	if (mount("overlay", overlay, "overlay", MS_RDONLY, options))
		die("mount of the overlay");
}

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (write(file, text, strlen(text)) < 0)
		die(path);
	close(file);
}

static void be_root_of_own_user_namespace(void)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "0 %d 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %d 1", getegid());
	if (unshare(CLONE_NEWUSER))
		die("user namespace");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", users);
	put("/proc/self/gid_map", groups);
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
	is_silent = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (is_silent == MAP_FAILED)
		die("mmap");
	if (argc > 2)
		be_root_of_own_user_namespace();
	device = open("/dev/fuse", O_RDWR);
	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0%s", device,
		 argc > 2 ? "" : ",allow_other");
	if (mount("fuse", argv[1], "fuse", 0, options))
		die("mount");
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(device);
	}
	/* The file system ends with its server, and nobody waits for it then. */
	close(device);
	if (argc > 2)
		mount_overlay(argv[1], argv[2]);
	snprintf(path, sizeof(path), "%s/file", argv[argc > 2 ? 2 : 1]);
	file = open(path, O_RDONLY);
	map = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, file, 0);
	if (file < 0 || map == MAP_FAILED)
		die("file");
	mapped = (void (*)(void (*)(void)))(map + in_file((void *)attacked));
	mapped(nap);
	if (argc > 2)
		*is_silent = 1;
	else
		kill(server, SIGSTOP);
	printf("ready %x\n", server);
	fflush(stdout);
	for (;;)
		mapped(nap);
}
