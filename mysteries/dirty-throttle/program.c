/*
 * Two threads write logs, one each, in records of 64 KiB to an encrypting file system, which is another
 * process (FUSE) and manages about 40 MB/s.
 *
 * Faulty: they log 128 MB/s. Pages wait to be written until the file system has as many dirty
 * ones as it may have, and from then on the kernel makes each writer pause in write(), so that
 * pages become dirty as slowly as they are written. Fixed (-DFIXED): they log a tenth of that.
 *
 * What a write() costs without a pause is measured at the start, while nothing is dirty yet.
 */
#include "../common.h"
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define THREADS 2
#define RECORD_BYTES (64UL << 10)
#define LOG_BYTES (256UL << 20) /* used in a circle */
#define ENCRYPT_NS_PER_PAGE (100 * MICROSECOND)
#define BASELINE_RECORDS 32
#ifdef FIXED
#define PERIOD_NS (10 * MILLISECOND)
#else
#define PERIOD_NS MILLISECOND
#endif

#define MAX_WRITE (256U << 10)
#define LOG_NODE 2 /* the first file, "0"; FUSE_ROOT_ID is its directory */

static int log_files[THREADS];
static uint64_t usual_ns;

static void fill_attributes(uint64_t node, struct fuse_attr *attr)
{
	*attr = (struct fuse_attr){
		.ino = node,
		.mode = node >= LOG_NODE ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = 1,
		.size = node >= LOG_NODE ? LOG_BYTES : 0,
		.blksize = 4096,
	};
}

/* Answers one request; what it does not know it refuses. Returns the length of the answer. */
static uint32_t answer_request(const struct fuse_in_header *in, const void *body, void *out, int *error)
{
	union {
		struct fuse_init_out *init;
		struct fuse_entry_out *entry;
		struct fuse_attr_out *attr;
		struct fuse_open_out *open;
		struct fuse_write_out *write;
	} reply = { .init = out };
	static uint64_t rounds;
	uint64_t node;

	switch (in->opcode) {
	case FUSE_INIT:
		rounds = rounds_for(ENCRYPT_NS_PER_PAGE);
		*reply.init = (struct fuse_init_out){
			.major = FUSE_KERNEL_VERSION,
			.minor = FUSE_KERNEL_MINOR_VERSION,
			.max_readahead = 128 << 10,
			.flags = FUSE_WRITEBACK_CACHE | FUSE_BIG_WRITES | FUSE_MAX_PAGES,
			.max_write = MAX_WRITE,
			.max_pages = MAX_WRITE / 4096,
			.max_background = 16,
			.congestion_threshold = 12,
			.time_gran = 1,
		};
		return sizeof *reply.init;
	case FUSE_LOOKUP:
		node = LOG_NODE + (uint64_t)atoi(body);
		*reply.entry = (struct fuse_entry_out){ .nodeid = node, .entry_valid = 3600, .attr_valid = 3600 };
		fill_attributes(node, &reply.entry->attr);
		return sizeof *reply.entry;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		*reply.attr = (struct fuse_attr_out){ .attr_valid = 3600 };
		fill_attributes(in->nodeid, &reply.attr->attr);
		return sizeof *reply.attr;
	case FUSE_OPEN:
		*reply.open = (struct fuse_open_out){ .open_flags = FOPEN_KEEP_CACHE };
		return sizeof *reply.open;
	case FUSE_WRITE: {
		uint32_t size = ((const struct fuse_write_in *)body)->size;

		compute(size, rounds * size / 4096);
		*reply.write = (struct fuse_write_out){ .size = size };
		return sizeof *reply.write;
	}
	case FUSE_RELEASE:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
		return 0;
	default:
		*error = ENOSYS;
		return 0;
	}
}

struct mounting {
	int device;
	int context;
};

static void encrypt(void *mounting)
{
	static char request[MAX_WRITE + 65536];
	int fd = ((struct mounting *)mounting)->device;

	close(((struct mounting *)mounting)->context);
	for (;;) {
		struct {
			struct fuse_out_header header;
			char body[256];
		} reply;
		const struct fuse_in_header *in = (const void *)request;
		int error = 0;

		if (read(fd, request, sizeof request) < (ssize_t)sizeof *in) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			return; /* unmounted */
		}
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT)
			continue;
		reply.header.len = (uint32_t)sizeof reply.header +
				   answer_request(in, in + 1, reply.body, &error);
		reply.header.error = -error;
		reply.header.unique = in->unique;
		if (write(fd, &reply, reply.header.len) < 0 && errno != ENOENT)
			return;
	}
}

/* Mounts the file system of the other process, nowhere: it goes with our last descriptor. */
static pid_t mount_log(void)
{
	struct mounting mounting = {
		.device = open("/dev/fuse", O_RDWR | O_CLOEXEC),
		.context = fsopen("fuse", FSOPEN_CLOEXEC),
	};
	int context = mounting.context, root;
	char text[16];
	pid_t server;

	if (mounting.device < 0)
		die("cannot open /dev/fuse (needs root)");
	snprintf(text, sizeof text, "%d", mounting.device);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "source", "whylag-mystery", 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "fd", text, 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "rootmode", "40000", 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "user_id", "0", 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "group_id", "0", 0) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		die("cannot mount a FUSE file system");
	server = start_process("encrypt", encrypt, &mounting);
	root = fsmount(context, FSMOUNT_CLOEXEC, 0);
	close(mounting.device);
	close(context);
	for (int id = 0; id < THREADS; id++) {
		snprintf(text, sizeof text, "%d", id);
		log_files[id] = root < 0 ? -1 : openat(root, text, O_WRONLY | O_CLOEXEC);
		if (log_files[id] < 0)
			die("cannot open the log");
	}
	close(root);
	return server;
}

static uint64_t write_record(int id, uint64_t n)
{
	static char record[RECORD_BYTES];
	uint64_t began = now_ns();

	if (pwrite(log_files[id], record, RECORD_BYTES, (off_t)(n * RECORD_BYTES % LOG_BYTES)) < 0)
		die("cannot write the log");
	return now_ns() - began;
}

static void log_records(int id, struct account *mine)
{
	uint64_t next = now_ns() + (uint64_t)id * PERIOD_NS / THREADS;

	for (; running(); next += PERIOD_NS) {
		uint64_t took;

		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
		took = write_record(id, BASELINE_RECORDS + mine->ops);
		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		mine->ops++;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	pid_t server = mount_log();
	struct account sum;

	for (uint64_t n = 0; n < BASELINE_RECORDS; n++)
		usual_ns += write_record(0, n) / BASELINE_RECORDS;
	sum = run_workers(THREADS, "log", log_records, seconds);
	end_process(server); /* first: what is still dirty need not be written */
	for (int id = 0; id < THREADS; id++)
		close(log_files[id]);

	printf("%llu records; without a pause a write() takes %.3f ms\n", (unsigned long long)sum.ops,
	       (double)usual_ns / 1e6);
	printf("each loses %.2f ms on average, %.1f ms at worst: %.0f %% of the threads' time\n",
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e6, (double)sum.max_ns / 1e6,
	       share(sum.lost_ns, sum.wall_ns));
	print_truth(&sum, " usual_ns=%llu", (unsigned long long)usual_ns);
	return 0;
}
