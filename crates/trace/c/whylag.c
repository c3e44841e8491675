/* The set-up of whylag.h: the file, its header, and what is registered in it. */
#define _GNU_SOURCE
#include "whylag.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FREE, BEING_CLAIMED, CLAIMED };
enum { TABLE = 112, DROPPED_THREADS = 640, DROPPED_OTHERS = 648, HEADER_BYTES = 4096, NAME_BYTES = 56 };

_Static_assert(sizeof(whylag_flow_entry) == 256, "flow");
_Static_assert(offsetof(whylag_flow_entry, begun) == 192, "flow");
_Static_assert(sizeof(whylag_thread_entry) == 256, "thread");
_Static_assert(offsetof(whylag_thread_entry, sequence) == 64, "thread");
_Static_assert(offsetof(whylag_thread_entry, last_name) == 112, "thread");
_Static_assert(sizeof(whylag_record) == 512, "record");
_Static_assert(offsetof(whylag_record, point) == 72, "record");
_Static_assert(offsetof(whylag_record, tail) == 504, "record");
_Static_assert(sizeof(whylag_block) == 64 + 28 * 8512, "block");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the trace format is little-endian");

typedef struct {
	uint32_t id;
	uint16_t length, reserved;
	char text[NAME_BYTES];
} name_entry;

/* The tracer of this process. */
static struct {
	char *base; /* NULL when off */
	size_t bytes;
	pid_t pid;
	int keep;
	unsigned names, threads, recent, slow, blocks;
	size_t names_at, flows_at, threads_at, recent_at, slow_at, blocks_at;
	uint32_t generation;
	char path[4096];
} tracer;

/* Held while something is registered. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t at_fork = PTHREAD_ONCE_INIT;
static uint32_t generations;
static __thread char why[512];
static __thread int has_handle;
/* Generation of the tracer and index of the thread: a mark need not ask which tracer that was. */
__thread uint32_t whylag_lane = WHYLAG_UNKNOWN;
/* By flow: the thread that began the first message of it, as the address of its whylag_lane. */
const void *whylag_first[WHYLAG_FLOWS];

const char *whylag_why(void)
{
	return why;
}

const char *whylag_path(void)
{
	return tracer.base ? tracer.path : NULL;
}

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof why, format, arguments);
	va_end(arguments);
	return -1;
}

/* A refusal for want of room, which the reader sees too. */
static int full(size_t counter, const char *what, unsigned most)
{
	WHYLAG_ADD_SHARED(*(uint64_t *)(void *)(tracer.base + counter), 1);
	return fail("no room for more than %u %s; ask for more in whylag_options", most, what);
}

/* Whoever still writes there writes into nothing. The addresses stay good. */
static void let_go(void)
{
	mmap(tracer.base, tracer.bytes, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	tracer.base = NULL;
}

static void in_child(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	lock = unlocked;
	if (tracer.base)
		let_go();
}

static void handle_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* A small file as text. */
static int read_text(const char *path, char *text, size_t size)
{
	ssize_t length = -1;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		length = read(file, text, size - 1);
		close(file);
	}
	if (length < 0)
		return fail("%s: %s", path, strerror(errno));
	text[length] = 0;
	return 0;
}

/* Field 22 of a stat file: when the process or thread started. */
static int read_start(const char *path, uint64_t *start)
{
	char text[1024], *field;
	int skipped;
	if (read_text(path, text, sizeof text))
		return -1;
	/* The name in parentheses may hold anything. */
	field = strrchr(text, ')');
	for (skipped = 0; field && skipped < 20; skipped++)
		field = strchr(field + 1, ' ');
	if (!field)
		return fail("%s has another form than expected", path);
	*start = strtoull(field, NULL, 10);
	return 0;
}

/* Whether this process maps the file with this inode. */
static int is_mapped(ino_t inode)
{
	char *line = NULL;
	size_t size = 0;
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && !found && getline(&line, &size, maps) > 0) {
		unsigned long long mapped = 0;
		found = sscanf(line, "%*s %*s %*s %*s %llu", &mapped) == 1 && mapped == inode &&
			(strstr(line, ".trace") || strstr(line, ".new"));
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/* Opens the folder, which is made if it is not there, and makes sure of it. */
static int open_folder(const char *path)
{
	struct stat status;
	struct statfs kind;
	const char *wrong = NULL;
	int folder;
	if (mkdir(path, 0700) && errno != EEXIST)
		return fail("%s: making the folder for traces: %s", path, strerror(errno));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &status) || fstatfs(folder, &kind))
		wrong = strerror(errno);
	else if (status.st_uid != geteuid())
		wrong = "belongs to another user";
	else if (status.st_mode & 022)
		wrong = "others may write there";
	else if (kind.f_type != 0x01021994)
		wrong = "is not on a tmpfs, so that a store could wait for the disk; name another "
			"folder with WHYLAG_TRACE_DIR";
	if (!wrong)
		return folder;
	fail("%s: the folder for traces: %s", path, wrong);
	if (folder >= 0)
		close(folder);
	return -1;
}

static int check(const char *what, unsigned asked, unsigned most, int power)
{
	if (asked >= 1 && asked <= most && !(power && (asked & (asked - 1))))
		return 0;
	return fail("%u %s: the least is 1, the most %u%s", asked, what, most,
		    power ? ", a power of two" : "");
}

static int plan(const whylag_options *options)
{
	size_t end = HEADER_BYTES;
	tracer.names = options->names ? options->names : 256;
	tracer.threads = options->threads ? options->threads : 64;
	tracer.recent = options->recent ? options->recent : 64;
	tracer.slow = options->slow ? options->slow : 64;
	tracer.blocks = options->blocks ? options->blocks : 16;
	if (check("names", tracer.names, 4096, 0) || check("threads", tracer.threads, 256, 0) ||
	    check("recent records", tracer.recent, 65536, 1) ||
	    check("slow records", tracer.slow, 65536, 1) ||
	    check("blocks of histograms", tracer.blocks, 4096, 0))
		return -1;
	tracer.names_at = end, end += sizeof(name_entry) * tracer.names;
	tracer.flows_at = end, end += sizeof(whylag_flow_entry) * WHYLAG_FLOWS;
	tracer.threads_at = end, end += sizeof(whylag_thread_entry) * tracer.threads;
	tracer.recent_at = end, end += sizeof(whylag_record) * tracer.threads * tracer.recent;
	tracer.slow_at = end, end += sizeof(whylag_record) * tracer.threads * tracer.slow;
	tracer.blocks_at = end, end += sizeof(whylag_block) * tracer.blocks;
	tracer.bytes = end;
	return end > (size_t)256 << 20 ? fail("%zu bytes are more than a trace may have", end) : 0;
}

/* Not ftruncate: a hole that finds no memory later is a SIGBUS in the traced program. */
static int write_zeros(int file)
{
	static const char zeros[65536];
	size_t left = tracer.bytes;
	while (left) {
		ssize_t written = write(file, zeros, left < sizeof zeros ? left : sizeof zeros);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return fail("%s: no room for a trace of %zu bytes (%s); make the file system "
				    "larger (docker: --shm-size), or ask for less",
				    tracer.path, tracer.bytes, strerror(errno));
		left -= (size_t)written;
	}
	return 0;
}

static void put(char *base, size_t at, uint64_t value, size_t bytes)
{
	memcpy(base + at, &value, bytes);
}

static int fill_header(char *base, uint64_t start)
{
	const size_t sections[6][3] = {
		{sizeof(name_entry), tracer.names, tracer.names_at},
		{sizeof(whylag_flow_entry), WHYLAG_FLOWS, tracer.flows_at},
		{sizeof(whylag_thread_entry), tracer.threads, tracer.threads_at},
		{sizeof(whylag_record), (size_t)tracer.threads * tracer.recent, tracer.recent_at},
		{sizeof(whylag_record), (size_t)tracer.threads * tracer.slow, tracer.slow_at},
		{sizeof(whylag_block), tracer.blocks, tracer.blocks_at},
	};
	struct timespec created;
	struct stat namespace;
	char boot_id[64];
	size_t index;
	if (read_text("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id))
		return -1;
	if (stat("/proc/self/ns/pid", &namespace))
		return fail("/proc/self/ns/pid: %s", strerror(errno));
	clock_gettime(CLOCK_REALTIME, &created);
	put(base, 8, 1, 2);
	put(base, 12, 0x01020304, 4);
	put(base, 16, tracer.bytes, 8);
	put(base, 24, (uint64_t)tracer.pid, 4);
	put(base, 28, 2, 4);
	put(base, 32, start, 8);
	put(base, 40, namespace.st_ino, 8);
	memcpy(base + 48, boot_id, 36);
	put(base, 84, 1, 4);
	put(base, 88, (uint64_t)created.tv_sec * 1000000000u + (uint64_t)created.tv_nsec, 8);
	put(base, 96, whylag_now(), 8);
	put(base, 104, 1, 4);
	put(base, 108, 6, 4);
	for (index = 0; index < 6; index++) {
		const size_t at = TABLE + index * 32, *section = sections[index];
		put(base, at, index + 1, 4);
		put(base, at + 4, section[0], 4);
		put(base, at + 8, section[1], 8);
		put(base, at + 16, section[2], 8);
		put(base, at + 24, section[0] * section[1], 8);
	}
	WHYLAG_STORE_RELEASE(*(uint64_t *)(void *)base, *(const uint64_t *)(const void *)"WHYLAGT\n");
	return 0;
}

/* Makes the file whole under another name, then gives it its own. */
static int make_file(int folder, uint64_t start)
{
	const int flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	char name[64], draft[64];
	struct stat there;
	void *base = MAP_FAILED;
	int file, failed;
	snprintf(name, sizeof name, "%d-%llu.trace", (int)tracer.pid, (unsigned long long)start);
	snprintf(draft, sizeof draft, ".%d-%llu.new", (int)tracer.pid, (unsigned long long)start);
	/* A file of this name is that of a program before an exec, or of a tracer that lives. */
	if (!fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) && is_mapped(there.st_ino))
		return fail("this process has a tracer already");
	file = openat(folder, draft, flags, 0600);
	if (file < 0 && errno == EEXIST && !unlinkat(folder, draft, 0))
		file = openat(folder, draft, flags, 0600);
	if (file < 0)
		return fail("%s: making the file: %s", tracer.path, strerror(errno));
	failed = write_zeros(file);
	if (!failed) {
		base = mmap(NULL, tracer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			    file, 0);
		failed = base == MAP_FAILED
				 ? fail("%s: mapping the file: %s", tracer.path, strerror(errno))
				 : fill_header(base, start);
	}
	if (!failed && renameat(folder, draft, folder, name))
		failed = fail("%s: giving the file its name: %s", tracer.path, strerror(errno));
	close(file);
	if (!failed) {
		tracer.base = base;
		return 0;
	}
	if (base != MAP_FAILED)
		munmap(base, tracer.bytes);
	unlinkat(folder, draft, 0);
	return -1;
}

static int start(const whylag_options *options)
{
	const char *named = options->folder ? options->folder : getenv("WHYLAG_TRACE_DIR");
	char path[2048];
	uint64_t start_ticks;
	int folder, failed;
	if (tracer.base)
		return fail("this process has a tracer already");
	if (plan(options) || read_start("/proc/self/stat", &start_ticks))
		return -1;
	if (named && *named)
		snprintf(path, sizeof path, "%s", named);
	else
		snprintf(path, sizeof path, "/dev/shm/whylag-%u", (unsigned)geteuid());
	tracer.pid = getpid();
	snprintf(tracer.path, sizeof tracer.path, "%s/%d-%llu.trace", path, (int)tracer.pid,
		 (unsigned long long)start_ticks);
	folder = open_folder(path);
	if (folder < 0)
		return -1;
	failed = make_file(folder, start_ticks);
	close(folder);
	if (failed)
		return -1;
	tracer.keep = options->keep || getenv("WHYLAG_TRACE_KEEP");
	tracer.generation = generations++ & 0x7fff;
	return 0;
}

int whylag_start(const whylag_options *options)
{
	static const whylag_options usual;
	const char *off = getenv("WHYLAG_TRACE");
	int failed;
	if (off && (!strcmp(off, "off") || !strcmp(off, "0")))
		return 0;
	pthread_once(&at_fork, handle_forks);
	pthread_mutex_lock(&lock);
	failed = start(options ? options : &usual);
	pthread_mutex_unlock(&lock);
	return failed;
}

void whylag_stop(void)
{
	pthread_mutex_lock(&lock);
	if (tracer.base) {
		WHYLAG_STORE_RELEASE(*(uint32_t *)(void *)(tracer.base + 84), 2);
		if (!tracer.keep)
			unlink(tracer.path);
		let_go();
	}
	pthread_mutex_unlock(&lock);
}

/* The id of a name, appended if it is new; 0 if that fails. With the lock. */
static uint32_t name_id(const char *text)
{
	name_entry *names = (void *)(tracer.base + tracer.names_at);
	const size_t length = strlen(text);
	size_t byte;
	unsigned index;
	int is_plain = length >= 1 && length <= NAME_BYTES;
	for (byte = 0; is_plain && byte < length; byte++) {
		const unsigned char c = (unsigned char)text[byte];
		/* Also the control characters of two bytes in UTF-8. */
		is_plain = c >= 32 && c != 127 &&
			   !(c == 0xc2 && (unsigned char)text[byte + 1] < 0xa0);
	}
	if (!is_plain) {
		fail("the name \"%.80s\" is not of 1 to 56 bytes without control characters", text);
		return 0;
	}
	for (index = 0; index < tracer.names && names[index].id; index++)
		if (names[index].length == length && !memcmp(names[index].text, text, length))
			return index + 1;
	if (index == tracer.names) {
		full(DROPPED_OTHERS, "names", tracer.names);
		return 0;
	}
	memcpy(names[index].text, text, length);
	names[index].length = (uint16_t)length;
	WHYLAG_STORE_RELEASE(names[index].id, index + 1);
	return index + 1;
}

static int declare(whylag_flow *flow, const char *name, const char *const *points, unsigned number,
		   uint64_t threshold)
{
	whylag_flow_entry *entries = (void *)(tracer.base + tracer.flows_at), *entry;
	const uint64_t hour = 3600000000000u;
	const uint32_t name_is = name_id(name);
	unsigned index, point;
	if (!name_is)
		return -1;
	if (number > WHYLAG_POINTS)
		return full(DROPPED_OTHERS, "infrastructure points of a flow", WHYLAG_POINTS);
	for (index = 0; index < WHYLAG_FLOWS && entries[index].id; index++)
		if (entries[index].name == name_is)
			return fail("there is a flow \"%s\" already; copy it", name);
	if (index == WHYLAG_FLOWS)
		return full(DROPPED_OTHERS, "flows", WHYLAG_FLOWS);
	entry = &entries[index];
	for (point = 0; point < number; point++) {
		entry->point[point] = name_id(points[point]);
		if (!entry->point[point])
			return -1;
	}
	entry->name = name_is;
	entry->points = number;
	entry->publishes = WHYLAG_PUBLISHES;
	entry->threshold = threshold < 1000 ? 1000 : threshold > hour ? hour : threshold;
	/* A tracer before this one may have had that thread. */
	WHYLAG_STORE_RELAXED(whylag_first[index], NULL);
	WHYLAG_STORE_RELEASE(entry->id, index + 1);
	flow->entry = entry;
	flow->id = index + 1;
	flow->points = number;
	flow->generation = tracer.generation;
	flow->threshold = entry->threshold;
	return 0;
}

int whylag_declare(whylag_flow *flow, const char *name, const char *const *points, unsigned number,
		   uint64_t threshold_ns)
{
	int failed;
	memset(flow, 0, sizeof *flow);
	pthread_mutex_lock(&lock);
	failed = tracer.base ? declare(flow, name, points, number, threshold_ns) : 0;
	pthread_mutex_unlock(&lock);
	return failed;
}

int whylag_name_publish(const whylag_flow *flow, const char *name, whylag_publish *publish)
{
	int failed = 0;
	uint32_t index = 0, id;
	memset(publish, 0, sizeof *publish);
	pthread_mutex_lock(&lock);
	if (tracer.base && flow->entry) {
		uint32_t *names = flow->entry->publish;
		id = name_id(name);
		while (index < WHYLAG_PUBLISHES && names[index] && names[index] != id)
			index++;
		if (!id) {
			failed = -1;
		} else if (index == WHYLAG_PUBLISHES) {
			failed = full(DROPPED_OTHERS, "named publishes of a flow", WHYLAG_PUBLISHES);
		} else {
			WHYLAG_STORE_RELEASE(names[index], id);
			publish->flow = (uint16_t)flow->id;
			publish->name = id;
			publish->index = (uint16_t)index;
		}
	}
	pthread_mutex_unlock(&lock);
	return failed;
}

/* A free entry for the calling thread: its index, or -1. */
static int claim(void)
{
	whylag_thread_entry *entries = (void *)(tracer.base + tracer.threads_at), *entry;
	char comm[32];
	uint64_t start_ticks;
	unsigned index = 0;
	uint32_t is_free = FREE;
	if (read_start("/proc/thread-self/stat", &start_ticks))
		return -1;
	while (index < tracer.threads &&
	       !__atomic_compare_exchange_n(&entries[index].state, &is_free, BEING_CLAIMED, 0,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		is_free = FREE;
		index++;
	}
	if (index == tracer.threads)
		return full(DROPPED_THREADS, "threads", tracer.threads);
	entry = &entries[index];
	entry->tid = (uint32_t)syscall(SYS_gettid);
	entry->start = start_ticks;
	/* A thread without a name has none in the file. */
	if (!read_text("/proc/thread-self/comm", comm, sizeof comm)) {
		comm[strcspn(comm, "\n")] = 0;
		memcpy(entry->comm, comm, strnlen(comm, sizeof entry->comm));
	}
	WHYLAG_STORE_RELEASE(entry->state, CLAIMED);
	return (int)index;
}

int whylag_register(whylag_thread *thread)
{
	int index = 0;
	memset(thread, 0, sizeof *thread);
	pthread_mutex_lock(&lock);
	if (tracer.base) {
		const int again = whylag_lane >> 16 == tracer.generation;
		if (again && has_handle)
			index = fail("this thread has a handle already; use that one");
		else
			index = again ? (int)(whylag_lane & 0xffff) : claim();
		if (index >= 0) {
			whylag_thread_entry *entries = (void *)(tracer.base + tracer.threads_at);
			whylag_record *recent = (void *)(tracer.base + tracer.recent_at);
			whylag_record *slow = (void *)(tracer.base + tracer.slow_at);
			thread->entry = &entries[index];
			thread->recent = recent + (size_t)index * tracer.recent;
			thread->slow = slow + (size_t)index * tracer.slow;
			thread->recent_mask = tracer.recent - 1;
			thread->slow_mask = tracer.slow - 1;
			thread->recent_written = thread->entry->recent;
			thread->slow_written = thread->entry->slow;
			thread->index = (uint32_t)index;
			thread->generation = tracer.generation;
			whylag_lane = tracer.generation << 16 | (uint32_t)index;
			has_handle = 1;
		}
	}
	pthread_mutex_unlock(&lock);
	return index < 0 ? -1 : 0;
}

void whylag_unregister(whylag_thread *thread)
{
	if (thread->entry)
		has_handle = 0;
	memset(thread, 0, sizeof *thread);
}

whylag_block *whylag_find_block(whylag_thread *thread, uint32_t flow)
{
	whylag_block *blocks = (void *)(tracer.base + tracer.blocks_at), *found = NULL;
	unsigned index;
	pthread_mutex_lock(&lock);
	/* One that this thread had before, or else a free one. */
	for (index = 0; tracer.base && index < tracer.blocks && !found; index++)
		if (blocks[index].state == FREE ||
		    (blocks[index].thread == thread->index && blocks[index].flow == flow))
			found = &blocks[index];
	if (found && found->state == FREE) {
		found->thread = thread->index;
		found->flow = flow;
		WHYLAG_STORE_RELEASE(found->state, CLAIMED);
	} else if (!found && tracer.base) {
		full(DROPPED_OTHERS, "blocks of histograms", tracer.blocks);
	}
	thread->blocks[flow - 1] = found;
	thread->looked |= 1u << (flow - 1);
	pthread_mutex_unlock(&lock);
	return found;
}

void whylag_begun_by_another(const whylag_flow *flow)
{
	const void *nobody = NULL;
	if (__atomic_compare_exchange_n(&whylag_first[flow->id - 1], &nobody,
					(const void *)&whylag_lane, 0, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		WHYLAG_ADD_AS_OWNER(flow->entry->begun_by_first, 1);
	else
		WHYLAG_ADD_SHARED(flow->entry->begun, 1);
}

void whylag_next_second(whylag_block *block, uint64_t second)
{
	unsigned metric;
	for (metric = 0; metric < WHYLAG_METRICS; metric++) {
		whylag_histogram *histogram = &block->metrics[metric];
		const uint64_t maximum = WHYLAG_LOAD_RELAXED(histogram->maximum);
		/* In this order a reader can see to which second a maximum belongs. A second
		 * without values leaves the earlier one as it is. */
		if (maximum) {
			WHYLAG_STORE_RELEASE(histogram->earlier_second, 0);
			WHYLAG_STORE_RELEASE(histogram->earlier_maximum, maximum);
			WHYLAG_STORE_RELEASE(histogram->earlier_second,
					     WHYLAG_LOAD_RELAXED(histogram->second));
			WHYLAG_STORE_RELEASE(histogram->maximum, 0);
		}
		WHYLAG_STORE_RELEASE(histogram->second, second);
	}
	/* The maxima that follow belong to this second. */
	WHYLAG_FENCE_RELEASE();
}
