/*
 * A memory cgroup of the mystery's own, with a limit (version 1 or 2 of the interface). It is
 * made when asked for and removed when the program ends, early or not.
 */
#ifndef MYSTERIES_OWN_CGROUP_H
#define MYSTERIES_OWN_CGROUP_H

#include "common.h"
#include <sys/stat.h>

static char own_group[4096], former_group[4096];

static inline bool write_number(const char *directory, const char *file, uint64_t number)
{
	char path[4200], text[32];
	int length = snprintf(text, sizeof text, "%llu", (unsigned long long)number), fd;
	bool done;

	snprintf(path, sizeof path, "%s/%s", directory, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, (size_t)length) == length;
	close(fd);
	return done;
}

/* Our cgroup in the hierarchy that /proc/self/cgroup calls `key`, below `mount`. */
static inline bool find_group(const char *key, const char *mount)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4000], *name, *path;
	bool found = false;

	while (file && !found && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		name = strchr(line, ':');
		path = name ? strchr(name + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		found = strcmp(name + 1, key) == 0;
		if (found)
			snprintf(former_group, sizeof former_group, "%s%s", mount, path);
	}
	if (file)
		fclose(file);
	return found;
}

static inline void leave_group(void)
{
	write_number(former_group, "cgroup.procs", (uint64_t)getpid());
	/* Threads that ended are in it until the kernel is through with them. */
	for (int tries = 0; tries < 200 && rmdir(own_group) && errno == EBUSY; tries++)
		usleep(5000);
}

/* Moves this process into a new cgroup that may use `bytes` of memory. Children are to be started
 * before. */
static inline void limit_memory(uint64_t bytes)
{
	const char *limit = "memory.limit_in_bytes";
	int length;

	if (find_group("memory", "/sys/fs/cgroup/memory")) {
		length = snprintf(own_group, sizeof own_group - 64, "%s", former_group);
	} else {
		limit = "memory.max"; /* version 2: a group with processes can have no children */
		find_group("", "/sys/fs/cgroup");
		length = snprintf(own_group, sizeof own_group, "/sys/fs/cgroup");
	}
	snprintf(own_group + length, 64, "/whylag-mystery-%d", (int)getpid());
	if (mkdir(own_group, 0755))
		die("cannot make the cgroup %s (needs root)", own_group);
	atexit(leave_group);
	if (!write_number(own_group, limit, bytes) ||
	    !write_number(own_group, "cgroup.procs", (uint64_t)getpid()))
		die("cannot limit memory in %s", own_group);
}

#endif
