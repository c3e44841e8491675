/*
 * Waits for requests of io_uring and libaio, each in a thread named after it: two that are idle,
 * two that read a file past the page cache, one read at a time. Prints NAME=time in the calls that
 * wait. Its argument is a folder for the file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define IDLE_MS 300
#define READS 2000
#define BLOCK 65536
#define FILE_SIZE (64 << 20)

static int empty_pipe[2], file;

static long must(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(2);
	}
	return result;
}

struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
};

static struct ring new_ring(void)
{
	struct io_uring_params p = { 0 };
	struct ring r;
	char *sq, *cq;

	r.fd = must(syscall(SYS_io_uring_setup, 8, &p), "io_uring_setup");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED,
		  r.fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_CQ_RING);
	r.sqes = mmap(NULL, p.sq_entries * sizeof *r.sqes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      r.fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)r.sqes == MAP_FAILED)
		must(-1, "mmap of the ring");
	r.sq_tail = (unsigned *)(sq + p.sq_off.tail);
	r.sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
	r.sq_array = (unsigned *)(sq + p.sq_off.array);
	r.cq_head = (unsigned *)(cq + p.cq_off.head);
	r.cq_tail = (unsigned *)(cq + p.cq_off.tail);
	return r;
}

/* Submits one read and waits for it: ns in the call. */
static uint64_t ring_read(struct ring *r, int fd, void *to, unsigned size, uint64_t at)
{
	unsigned tail = *r->sq_tail, index = tail & *r->sq_mask;
	uint64_t began;

	memset(&r->sqes[index], 0, sizeof *r->sqes);
	r->sqes[index].opcode = IORING_OP_READ;
	r->sqes[index].fd = fd;
	r->sqes[index].addr = (uintptr_t)to;
	r->sqes[index].len = size;
	r->sqes[index].off = at;
	r->sq_array[index] = index;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	began = now_ns();
	must(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0),
	     "io_uring_enter");
	began = now_ns() - began;
	*r->cq_head = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
	return began;
}

static void *block(void)
{
	void *memory;

	if (posix_memalign(&memory, 4096, BLOCK))
		abort();
	return memory;
}

static uint64_t place(int i) { return (uint64_t)i * 7919 % (FILE_SIZE / BLOCK) * BLOCK; }

static uint64_t uring_idle(void)
{
	struct ring r = new_ring();

	return ring_read(&r, empty_pipe[0], block(), 1, (uint64_t)-1);
}

static uint64_t uring_read(void)
{
	struct ring r = new_ring();
	void *to = block();
	uint64_t ns = 0;

	for (int i = 0; i < READS; i++)
		ns += ring_read(&r, file, to, BLOCK, place(i));
	return ns;
}

static uint64_t aio_idle(void)
{
	struct timespec limit = { 0, IDLE_MS * 1000000 };
	aio_context_t context = 0;
	struct io_event event;
	uint64_t began;

	must(syscall(SYS_io_setup, 8, &context), "io_setup");
	began = now_ns();
	must(syscall(SYS_io_getevents, context, 1, 1, &event, &limit), "io_getevents");
	return now_ns() - began;
}

static uint64_t aio_read(void)
{
	aio_context_t context = 0;
	struct iocb request = { 0 }, *requests = &request;
	struct io_event event;
	uint64_t ns = 0, began;

	must(syscall(SYS_io_setup, 8, &context), "io_setup");
	request.aio_lio_opcode = IOCB_CMD_PREAD;
	request.aio_fildes = (unsigned)file;
	request.aio_buf = (uintptr_t)block();
	request.aio_nbytes = BLOCK;
	for (int i = 0; i < READS; i++) {
		request.aio_offset = (int64_t)place(i);
		must(syscall(SYS_io_submit, context, 1, &requests), "io_submit");
		began = now_ns();
		must(syscall(SYS_io_getevents, context, 1, 1, &event, NULL), "io_getevents");
		ns += now_ns() - began;
	}
	return ns;
}

static struct one {
	const char *name;
	uint64_t (*body)(void);
	pthread_t thread;
	uint64_t ns;
} all[] = {
	{ "uring_idle", uring_idle, 0, 0 },
	{ "aio_idle", aio_idle, 0, 0 },
	{ "uring_read", uring_read, 0, 0 },
	{ "aio_read", aio_read, 0, 0 },
};
#define ALL (sizeof all / sizeof *all)

static void *thread_main(void *argument)
{
	struct one *self = argument;

	pthread_setname_np(pthread_self(), self->name);
	self->ns = self->body();
	return NULL;
}

static void new_file(const char *folder)
{
	char path[4096], *memory = block();

	snprintf(path, sizeof path, "%s/read-XXXXXX", folder);
	file = must(mkostemp(path, O_DIRECT), path);
	unlink(path);
	memset(memory, 'x', BLOCK);
	for (uint64_t at = 0; at < FILE_SIZE; at += BLOCK)
		must(pwrite(file, memory, BLOCK, (off_t)at), "writing past the page cache");
	must(fsync(file), "fsync");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 1;
	new_file(argv[1]);
	must(pipe(empty_pipe), "pipe");
	for (size_t i = 0; i < ALL; i++)
		pthread_create(&all[i].thread, NULL, thread_main, &all[i]);
	sleep_ms(IDLE_MS);
	must(write(empty_pipe[1], "x", 1), "write");
	for (size_t i = 0; i < ALL; i++) {
		pthread_join(all[i].thread, NULL);
		printf("%s=%lu\n", all[i].name, all[i].ns);
	}
	return 0;
}
