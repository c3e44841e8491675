/*
 * fuse FOLDER [OVERLAY [HOW]]: runs code of a file on FUSE whose server has stopped answering,
 * in a mount namespace of its own. Prints a line with the server's pid when that
 * is so, and ends when it is killed, after the server. Needs /dev/fuse, which is often everybody's.
 * With OVERLAY, another folder, the file is seen through an overlay over the first, and can
 * still be opened and looked at, but not be read; all is mounted in a user namespace of its own,
 * as anybody can. HOW says what else is done with it:
 *
 *   memory   nothing of the file is read before; it is mapped where programs begin
 *   lookups  no name is looked up any more
 *   root     the same, and the overlay is the root of this process, which stays in the first mount
 *            namespace: the mounts are a child's
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
/* What the server does not answer; shared with it. */
enum { READS = 1, LOOKUPS = 2 };
static volatile int *silent;

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

	/* Should a test fail, what waits for answers ends all the same. */
	alarm(120);
	while (read(device, request, sizeof(request)) > 0) {
		switch (in->opcode) {
		case FUSE_INIT:
			answer(device, in, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			if (*silent & LOOKUPS)
				break;
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
			opened.open_flags = *silent & READS ? FOPEN_DIRECT_IO : 0;
			answer(device, in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			if (*silent & READS)
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

/* Mounts it all in a mount namespace of this process's own; gives the server's pid. */
static pid_t serve_in_own_namespace(const char *folder, const char *overlay)
{
	int device = open("/dev/fuse", O_RDWR);
	char options[256];
	pid_t server;

	if (device < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0%s", device,
		 overlay ? "" : ",allow_other");
	if (mount("fuse", folder, "fuse", 0, options))
		die("mount");
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(device);
	}
	/* The file system ends with its server, and nobody waits for it then. */
	close(device);
	if (overlay)
		mount_overlay(folder, overlay);
	return server;
}

/* Becomes a process whose root the overlay is; gives the server's pid. */
static pid_t have_root_of_child(const char *folder, const char *overlay)
{
	int ends[2];
	pid_t child, server;
	char root[4200];

	if (pipe(ends))
		die("pipe");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		server = serve_in_own_namespace(folder, overlay);
		if (write(ends[1], &server, sizeof(server)) != sizeof(server))
			die("pipe");
		for (;;)
			pause();
	}
	snprintf(root, sizeof(root), "/proc/%d/root%s", child, overlay);
	if (read(ends[0], &server, sizeof(server)) != sizeof(server) || chroot(root) || chdir("/"))
		die("root");
	return server;
}

static void ready(pid_t server)
{
	printf("ready %x\n", server);
	fflush(stdout);
}

static void naps(void (*below)(void (*)(void)))
{
	for (;;)
		below(nap);
}

int main(int argc, char **argv)
{
	const char *overlay = argc > 2 ? argv[2] : NULL, *how = argc > 3 ? argv[3] : "";
	int file, own = open("/proc/self/exe", O_RDONLY), is_memory = !strcmp(how, "memory");
	void *place = is_memory ? (void *)0x10000 : NULL;
	int flags = is_memory ? MAP_PRIVATE | MAP_FIXED : MAP_PRIVATE | MAP_POPULATE;
	char path[4096], *map;
	void (*mapped)(void (*)(void));
	pid_t server;

	if (argc < 2)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	length = read(own, contents, sizeof(contents));
	silent = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (silent == MAP_FAILED)
		die("mmap");
	if (overlay)
		be_root_of_own_user_namespace();
	if (!strcmp(how, "root")) {
		server = have_root_of_child(argv[1], overlay);
		*silent = LOOKUPS;
		ready(server);
		naps(attacked);
	}
	server = serve_in_own_namespace(argv[1], overlay);
	if (!strcmp(how, "lookups")) {
		*silent = LOOKUPS;
		ready(server);
		naps(attacked);
	}
	snprintf(path, sizeof(path), "%s/file", overlay ? overlay : argv[1]);
	file = open(path, O_RDONLY);
	map = mmap(place, length, PROT_READ | PROT_EXEC, flags, file, 0);
	if (file < 0 || map == MAP_FAILED)
		die("file");
	mapped = (void (*)(void (*)(void)))(map + in_file((void *)attacked));
	if (!is_memory)
		mapped(nap);
	if (overlay)
		*silent = READS;
	else
		kill(server, SIGSTOP);
	ready(server);
	naps(is_memory ? attacked : mapped);
}
