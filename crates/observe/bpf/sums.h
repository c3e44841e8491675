/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What programs add up in maps: their keys and values, which the recorder reads. A part of wire.h.
 */
#ifndef WHYLAG_SUMS_H
#define WHYLAG_SUMS_H

/* Histograms. 1,152 buckets of p = 5 reach 2^40 ns = 18 minutes. */
#define HIST_BUCKETS	1152
#define HIST_PRECISION	5

enum hist_kind {
	HIST_SYSCALL,
	HIST_OFF_CPU,
	HIST_RUN_QUEUE,
	HIST_LOCK,
	HIST_FAULT,
	HIST_HARDIRQ,
	HIST_SOFTIRQ,
	HIST_BLOCK_IO,
	HIST_RECLAIM,
	HIST_COMPACTION,
	HIST_HELD_SEND,
	HIST_SAMPLED_SYSCALL,	/* as HIST_SYSCALL, in windows */
	HIST_CENSORED_SYSCALL,	/* the same of those that began before their window: the part within */
	HIST_LOOP_TURN,		/* from a return of poll, select or epoll to the next call of it */
	HIST_REQUEST_TOTAL,	/* these by service: arrival to first send of the answer */
	HIST_REQUEST_QUEUED,	/* arrival to first read */
	HIST_REQUEST_WORKED,	/* first read to first send */
	HIST_REQUEST_ANSWERING,	/* first send to last, if there were several */
	HIST_REQUEST_HELD,	/* as HIST_REQUEST_TOTAL, of those that nobody worked on */
};

#define HIST_SLOTS_MAX	1024	/* a power of two */

struct hist_key {
	u32 tgid;
	u32 kind;
	u64 id;			/* call, lock class, vector, device */
};

struct hist {
	u64 sum;
	u64 max;
	u64 inverse_min;	/* ~min, so that zero means "none yet" */
	u32 buckets[HIST_BUCKETS];
};

/*
 * Lock classes in hist_key.id and wait_key.object. Any other number is the
 * address of the code that takes the lock.
 */
enum lock_class {
	LOCK_CLASS_UNKNOWN,
	LOCK_CLASS_MMAP_READ,
	LOCK_CLASS_MMAP_WRITE,
	LOCK_CLASS_SPIN,
};

/* Interrupt vectors beyond device interrupts, in hist_key.id. */
enum vector {
	VEC_LOCAL_TIMER = 0x10000,
	VEC_RESCHEDULE,
	VEC_CALL_FUNCTION,
	VEC_CALL_FUNCTION_SINGLE,
	VEC_IRQ_WORK,
};

struct call_sum {
	u16 nr;
	u16 hist;		/* slot of its histogram, 0: none yet */
	u16 sampled_hist;	/* the same, of those in windows */
	u16 used;
	u64 ns;			/* on a CPU in it */
};

struct call_key {
	u64 first_ns;
	u32 tid;
	u32 nr;
};

struct wait_key {
	u32 tgid;
	u32 account;
	u64 object;
	u32 waker_tgid;
	u32 asked;		/* for the answer to what it had sent */
};

/* What each wait changes comes first, in a cache line. */
struct wait_sum {
	u64 count, ns, max_ns;
	u64 usual_ns;		/* a vote weighted by time: who was at the end of most of all, if anybody */
	u64 usual;		/* END_* << 32 | tid, in one store */
	u32 end_tid, end;	/* of the longest: who was at the end of most of it, and how */
	u32 waiter_tid;		/* who alone has waited so, 0: several */
	u32 waker_tid;		/* when last seen */
	u32 began_tid;		/* a thread that did nothing else before, 0: none, */
	u32 began_by;		/* and who ended that wait */
	u64 ends[END_MAX];	/* ns, sum to `ns` */
	char waker_comm[16];
	u64 by_waiter, lock_like;
	u64 many;		/* its waker had just woken another from the same object */
	u64 again;		/* began right after another for the same object had ended */
	u64 by_parked;		/* ended by one that a thread had just woken, too */
	u64 open;		/* had not ended when recording stopped, or the process did */
	u64 turns, turn_ns;	/* of a lock: seen whole while others waited */
	u64 idle_turn_ns;	/* of those in which it waited for work as soon as it had the lock */
};

struct hold_key {
	u32 tgid;		/* whose address space */
	u32 holder_tgid;
	u16 holder_call;
	u8 holder_write;
	u8 waiter_write;
	u32 pad;
};

struct hold_sum {
	u64 count, ns, max_ns;
	char holder_comm[16];
};

struct runner_key {
	u32 tgid;
	u32 runner_tgid;
	u8 realtime;
	u8 pad[3];
};

struct runner_sum {
	u64 count, ns;
	char runner_comm[16];
};

/* A process in a second of CLOCK_MONOTONIC: one bit for each piece. */
#define PRESENCE_PIECE_NS	10000000
struct presence_key {
	u64 second;
	u32 tgid;
	u32 pad;
};

struct presence {
	u64 low, high;		/* pieces 0 to 63, and on */
	char comm[16];
};

/*
 * Waits for spinlocks, by who was in a call on another CPU at their end: how many were looked at, and for
 * how much waiting they stand.
 */
enum beside_kind { BESIDE_OTHER, BESIDE_PROC_FILE, BESIDE_SOCK_DIAG };

struct beside_key {
	u32 tgid;
	u32 other_tgid;
	u16 call;		/* of the other */
	u16 kind;
	u32 pad;
	u64 kernel;		/* stack of the waiter */
};

struct beside_sum {
	u64 count, ns, max_ns;
	char comm[16];
	char name[16];		/* of the file of /proc, and of its folder */
	char folder[16];
};

struct path_key {
	u32 tgid;
	u16 account;
	u16 call;
	u64 kernel, user;	/* stacks */
	u32 sampled;
	u32 tid;		/* of samples, 0: not kept apart */
};

struct path_sum {
	u64 count, ns, max_ns;
};

struct call_error_key {
	u32 tgid;
	u16 call;
	u16 error;		/* errno */
};

struct retry_key {
	u64 object;
	u32 tgid;
	u16 call;
	u16 error;		/* errno of the tries */
	u16 pipe;		/* what it asks for is room in a pipe */
	u16 account;		/* of the sleeps */
	u32 pad;
};

/* What is asked for by name: a path, or an address. */
#define RETRY_PATH	140
struct retry_name {
	u64 address[2];
	char path[RETRY_PATH];	/* its beginning */
	u16 family;		/* of the address, 0: there is none */
	u16 port;
};

/* Sleeps between a try that was refused and the next. */
struct retry_sum {
	u64 count, ns, max_ns;
	u64 won_ns;		/* of those who got it in the end */
	struct retry_name name;
};

struct page_read_key {
	u32 tgid;
	u32 evictor_tgid;	/* of who had put it out of the page cache before, */
	u16 call;
	u16 evictor_call;	/* and in which call */
	u16 reclaim;		/* to have memory free */
	u16 pad;
};

/* Pages that were read into the page cache. */
#define FILE_NAME	32
struct page_read_sum {
	u64 pages;
	char evictor_comm[16];
	char file[FILE_NAME];	/* one of them: the last part of its path */
};

struct send_key {
	u64 inode;
	u32 tgid, fd;
};

/* Sends that found no room, and the last burst of them. */
struct send_sum {
	u64 refused, waited, waited_ns;
	u64 first_ns, last_ns;
};

#endif
