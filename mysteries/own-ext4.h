/*
 * A file system of the mystery's own: ext4 with a journal, on a loop device, in a
 * nameless file. The loop device does direct I/O, as a disk would, and the file system does not
 * flush the disk's cache (barrier=0, as on storage with a battery): what waiting is left is for
 * the journal.
 *
 * It is mounted nowhere: the caller has a descriptor of its root directory, and when the last
 * descriptor goes, so do the mount, the loop device and the file, however the program ends.
 */
#ifndef MYSTERIES_OWN_EXT4_H
#define MYSTERIES_OWN_EXT4_H

#include "common.h"
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Runs mkfs.ext4 on an open file. */
static inline void make_ext4(int image)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof path, "/proc/self/fd/%d", image);
	fcntl(image, F_SETFD, 0);
	pid = fork();
	if (pid == 0) {
		execlp("mkfs.ext4", "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=1",
		       "-J", "size=64", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die("cannot start mkfs.ext4");
	errno = 0;
	if (status)
		die("mkfs.ext4 failed (is e2fsprogs installed?)");
	fcntl(image, F_SETFD, FD_CLOEXEC);
}

/* Puts the image behind a free loop device, which frees itself after its last user. */
static inline int attach_loop(int image, char *path, size_t length)
{
	struct loop_config config = { .fd = (uint32_t)image, .block_size = 4096 };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		die("cannot open /dev/loop-control (needs root)");
	config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
	for (int tries = 0; tries < 20; tries++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE), device;

		snprintf(path, length, "/dev/loop%d", number);
		device = open(path, O_RDWR | O_CLOEXEC);
		if (device >= 0 && ioctl(device, LOOP_CONFIGURE, &config) == 0) {
			close(control);
			return device;
		}
		close(device); /* somebody else was faster */
	}
	die("no free loop device");
}

/* The root directory of a new file system of `bytes`, whose files are on the disk of `fallback`
 * or TMPDIR. */
static inline int own_ext4(uint64_t bytes, const char *fallback)
{
	int image = nameless_file(fallback), device, context, root;
	char path[64];

	if (ftruncate(image, (off_t)bytes))
		die("cannot make an image of a file system");
	make_ext4(image);
	device = attach_loop(image, path, sizeof path);
	context = fsopen("ext4", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "source", path, 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "barrier", "0", 0) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		die("cannot mount %s", path);
	root = fsmount(context, FSMOUNT_CLOEXEC, 0);
	if (root < 0)
		die("cannot mount %s", path);
	close(context);
	close(device);
	close(image);
	return root;
}

/* A process for start_process(): unpacks an archive of small files into the file system and
 * removes them again, for ever. `root` points at its root directory. */
static inline void unpack_archives(void *root)
{
	int top = *(int *)root;
	char name[32];

	for (unsigned round = 0;; round++) {
		int directory;

		snprintf(name, sizeof name, "archive-%u", round);
		if (mkdirat(top, name, 0700))
			die("cannot make a directory in the mystery's own file system");
		directory = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (int pass = 0; pass < 2; pass++) {
			for (int i = 0; i < 5000; i++) {
				int fd;

				snprintf(name, sizeof name, "file-number-%d", i);
				if (pass == 1) {
					unlinkat(directory, name, 0);
					continue;
				}
				fd = openat(directory, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
				if (fd < 0 || write(fd, "x", 1) != 1)
					die("cannot unpack into the mystery's own file system");
				close(fd);
			}
		}
		close(directory);
		snprintf(name, sizeof name, "archive-%u", round);
		unlinkat(top, name, AT_REMOVEDIR);
	}
}

/* A new file in that file system that never had a name. */
static inline int file_in(int root)
{
	int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		die("cannot create a file in the mystery's own file system");
	return fd;
}

#endif
