/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What programs send one by one: accounts of threads, outliers, stacks, queues, requests. A part of wire.h.
 */
#ifndef WHYLAG_RECORDS_H
#define WHYLAG_RECORDS_H

/* CPUs in a mask of those that a thread may run on; hosts with more say nothing of them. */
#define MASK_CPUS	1024
#define MASK_WORDS	16

/* One thread's accounts: from the iterator, and when it dies. */
struct thread_record {
	u32 type;		/* RECORD_THREAD */
	u32 tid;
	u32 tgid;
	u32 open;
	u16 open_call;
	u8 alive;
	u8 realtime;		/* priority_of() */
	u8 pad[4];
	u64 first_ns;
	u64 since;		/* the accounts cover up to here */
	u64 now;		/* and `open` up to here */
	u64 minor_faults, major_faults;
	u64 sleeps, preemptions, migrations;
	u64 accounts[ACCT_MAX];
	struct call_sum calls[CALL_SLOTS];
	u64 cpus[MASK_WORDS];	/* that it may run on; all 0 if that is not known */
	u64 object, ip, sp, fp;	/* of one that sleeps when recording stops: for what, and its registers */
	char comm[16];
};

struct who {
	u32 tid;
	u32 tgid;
	char comm[16];
};

struct ran {
	struct who who;
	u32 pad;
	u8 realtime;		/* priority_of() */
	u8 pad2[3];
	u64 since, until;
};

struct hold {
	struct who who;
	u64 since, until;
	u16 call;
	u8 write;
	u8 class;		/* of its mm_lock's classes */
	u8 pad[4];
};

#define RAN_KEPT	4
#define RUNNER_SAMPLE_NS	1048576	/* a power of two; see stands_for() */
#define SPIN_SAMPLE_NS	262144	/* likewise */
#define RAN_SEEN	16	/* a power of two */
#define SERVED_SEEN	16	/* likewise */
#define STACK_FRAMES	127
#define STACK_WHOLE	0xffffffff	/* in stacks_sent: the walk got all of it */

enum record_type {
	RECORD_THREAD = 1,
	RECORD_OUTLIER,
	RECORD_STACK,
	RECORD_EVENT,
	RECORD_MAPPING,
	RECORD_WORDS,
	RECORD_REQUEST,
	RECORD_PYTHON,
	RECORD_CODE,
	RECORD_ROOM,
};

/* Threads in a block of what is remembered of them, 8.9 MB. */
#define BLOCK_THREADS	2048
/* Addresses of the kernel that are asked for at once, and those that are named at each task of a walk. */
#define SYMBOLS_AT_ONCE	4096
#define SYMBOLS_AT_TASK	32

/* The threads that have come need so many slots. */
struct room_record {
	u32 type;		/* RECORD_ROOM */
	u32 slot;
};

enum outlier_kind {
	OUTLIER_SYSCALL,
	OUTLIER_OFF_CPU,
	OUTLIER_RUN_QUEUE,
	OUTLIER_LOCK_HOLD,
	OUTLIER_FIRST_CALL,
};

/* The timer that ended a sleep; times are of CLOCK_MONOTONIC. */
struct timer {
	u64 softexpires;	/* not before, 0 for a timer in jiffies */
	u64 expires;		/* and no later than that, if all goes well */
	u64 fired;		/* 0: no timer */
	u32 jiffies;		/* of the low-resolution timer wheel */
	u32 was_idle;		/* nothing ran on the CPU that it fired on */
};

/* An interrupt or softirq, none within another. */
struct served {
	u64 since, until;
	u64 id;			/* as in hist_key */
	u32 kind;		/* enum hist_kind */
	u32 pad;
};

/* One long sleep: its part of an outlier. */
struct sleep {
	u64 start, wake;	/* off the CPU, ready to run again */
	u64 ns;			/* start to running again */
	u64 object;
	u64 kernel_stack;
	u64 fault_ip;
	struct who waker;
	struct hold holder;
	struct timer timer;
	u64 served_ns;		/* interrupts from `wake` on */
	struct served longest;	/* of those; kept from `wake` on, too */
	u32 account;
	u16 waker_context;
	u16 ran_count;
	struct ran ran[RAN_KEPT];
};

struct outlier_record {
	u32 type;		/* RECORD_OUTLIER */
	u32 kind;
	u32 tid;
	u32 tgid;
	u32 cpu;
	u16 call;
	u16 has_result;
	u64 start_ns;
	u64 duration_ns;
	u64 args[6];
	s64 result;
	u64 user_stack;
	u64 copy;		/* words_record of that stack, 0: none */
	u64 minor_faults, major_faults;	/* of a first call */
	u64 throttled;		/* part of a sleep: ready, and a quota kept it */
	struct sleep sleep;
	char comm[16];
	u64 breakdown[ACCT_MAX];	/* ACCT_SYSCALL: running in `call`; sleeps and holds are sent without it */
};

struct stack_record {
	u32 type;		/* RECORD_STACK */
	u32 tgid;		/* 0: kernel */
	u64 id;
	u32 count;
	u32 pad;
	u64 frames[STACK_FRAMES];
};

/*
 * The top of a user stack word by word, for code without frame pointers. It
 * is read in pieces that no page boundary divides; `first` is the one at the
 * stack pointer.
 */
#define WORDS_PIECE	64
#define WORDS_PIECES	16
#define WORDS_ENTRIES	32	/* a power of two */
struct words_record {
	u32 type;		/* RECORD_WORDS */
	u32 tgid;
	u64 id;			/* of the stack that is made of it, 0: of no interval */
	u64 walked;		/* of the one that frame pointers give, 0: of a first call */
	u64 ip, sp, fp;
	u32 first, count;
	/* The innermost frames on this stack by which C calls Python, 0: none more. */
	u64 entries[WORDS_ENTRIES];
	u64 words[WORDS_PIECE * WORDS_PIECES];
};

/*
 * Where the CPython interpreter of a process is, and how it lays out what is
 * read of it: offsets in its structures, as the loader found them.
 */
struct python {
	u64 runtime;		/* _PyRuntime */
	u64 code_type, text_type;	/* PyCode_Type, PyUnicode_Type */
	u32 interpreters;	/* in the runtime: the first interpreter */
	u32 next_interpreter, threads;	/* in an interpreter */
	u32 next_thread, previous_thread, interpreter, thread_self, frames;	/* in a thread */
	u32 innermost;		/* in what `frames` points to; PYTHON_DIRECT: it is the frame */
	u32 frame_bytes;	/* that are read of a frame */
	u32 previous, code, instruction, owner;	/* in a frame */
	u32 entry;		/* likewise; 0: entries are frames of their own */
	u32 code_bytes;		/* that are read of a code object */
	u32 file, name, line, lines;	/* in a code object */
	u32 instructions;
	u32 text_ascii, text_other;	/* bytes in front of the characters of a text */
	u32 pad;
};
#define PYTHON_DIRECT	0xffffffff
#define PYTHON_FRAMES	128	/* a power of two */

enum python_end {
	PYTHON_WHOLE,		/* the outermost frame was reached */
	PYTHON_DEEPER,		/* there are more than are kept */
	PYTHON_UNREADABLE,	/* what comes next is not in memory, or no frame */
};

struct python_frame {
	u64 code;		/* id of its code_record */
	u64 at;			/* instruction; bit 0: it was called by C */
};

/* The Python side of a stack that is sent after it, innermost first. */
struct python_record {
	u32 type;		/* RECORD_PYTHON */
	u32 tgid;
	u64 stack;
	u32 count;
	u32 end;		/* enum python_end */
	struct python_frame frames[PYTHON_FRAMES];
};

/* Of a name the beginning, of a path the end. */
#define PYTHON_TEXT	192
struct python_text {
	u32 width;		/* bytes of a character: 1, 2 or 4 */
	u32 bytes;		/* that are here */
	u32 left_out;		/* that are not */
	u32 pad;
	u8 text[PYTHON_TEXT];
};

/* A Python function: its code object, and the table of its lines as far as there is room. */
#define PYTHON_LINES	2048
struct code_record {
	u32 type;		/* RECORD_CODE */
	u32 tgid;
	u64 id;
	u64 address;		/* of its first instruction */
	u32 line;		/* where it begins */
	u32 count;		/* bytes of `lines` */
	struct python_text name, file;
	u8 lines[PYTHON_LINES];
};

enum event_kind {
	EVENT_EXEC,
	EVENT_FORK,
	EVENT_EXIT,
	EVENT_SIGNAL,
	EVENT_RECLAIM,
	EVENT_COMPACTION,
	EVENT_DIRTY_THROTTLE,
	EVENT_JOURNAL_COMMIT,
	EVENT_BLOCK_IO,
	EVENT_HELD_SEND,
	EVENT_SPIN,
};

struct event_record {
	u32 type;		/* RECORD_EVENT */
	u32 kind;
	u32 tid;
	u32 tgid;
	u64 time_ns;
	u64 value;
	u64 value2;		/* sender's tid, device, calls and which, call */
	char text[64];
};

/* An executable mapping of a process that exits. */
#define PATH_PARTS	8
#define PATH_PART	40
struct mapping_record {
	u32 type;		/* RECORD_MAPPING */
	u32 tgid;
	u64 start, end, offset;
	u64 inode;
	u32 device;
	u32 part_count;
	u32 user;		/* effective */
	u32 pad;
	char parts[PATH_PARTS * PATH_PART];	/* file name first */
};

/* A socket at one moment, from the iterator. */
struct queue_record {
	u64 time_ns;
	u64 inode;
	u32 tgid, fd;
	u16 family, protocol, type, local_port;
	u16 remote_port;
	u8 state;
	u8 nagle;		/* a small rest waits for an acknowledgement */
	u8 role;		/* enum role */
	u8 pad[3];
	u8 local[16], remote[16];
	u64 receive, receive_limit;	/* bytes; listening: connections; AF_UNIX: packets */
	u64 send, send_limit;	/* bytes */
	u64 drops;		/* since it was found */
	u64 drop_first;		/* since the last record, 0: none was reported */
	u64 drop_last;
	u32 drop_reason;	/* enum skb_drop_reason */
	u32 resent;		/* segments, since it was found */
	u64 timeouts;		/* of these, sent by a timer */
	u64 timeout_at;		/* the last of them */
	u64 timeout_after;	/* what its timer was set to, 0: a probe */
	u32 connecting;		/* it was the SYN */
	u32 pad2;
	u64 sent_at;		/* of what has had no answer so far, 0: there is nothing */
	u64 heard_at;		/* last data from the other side, 0: never */
};

/* Who asks on a socket. */
enum role { ROLE_UNKNOWN, ROLE_CLIENT, ROLE_SERVER };

/* What a service is reached by. */
enum service_kind {
	SERVICE_TCP,
	SERVICE_UDP,
	SERVICE_UNIX,
	SERVICE_OTHERS,		/* all that found no room */
};

/*
 * A service: a port or path that watched threads answer at, or one that they
 * call. Calls are counted like requests: `total` is then the time until the
 * answer arrives, `queued` the time until it is read.
 */
#define SERVICES	256
#define SERVICE_PATH	108
#define SERVICE_METRICS	5
struct service {
	u32 number;		/* 0: there is none */
	u32 tgid;		/* of the first thread seen at it */
	u8 role;		/* enum role */
	u8 kind;		/* enum service_kind */
	u16 port;
	u16 family;
	u16 slots[SERVICE_METRICS];	/* of HIST_REQUEST_TOTAL and those after it */
	u32 pad;
	u64 unsent;		/* slow ones that were too many to be sent */
	u64 connections;	/* since the start */
	u64 several;		/* requests that came before the one before was answered */
	u64 pushed;		/* sends that answer no request */
	u64 open;		/* requests without an answer when recording stopped, */
	u64 oldest;		/* and when the first of them came */
	u64 packets;		/* of UDP that were sent to a peer, */
	u64 packets_since;	/* and when the first was */
	u64 given_up;		/* calls whose connection was closed before there was an answer */
	u64 held;		/* requests that nobody worked on: long polls, subscriptions */
	u8 address[16];		/* of the peer that is called */
	char path[SERVICE_PATH];
	u32 peer_tgid;		/* who answers calls: the last one seen on this host, 0: none */
	char peer_comm[16];
};

/* A request or call; times are 0 where they are not known. */
struct request_record {
	u32 type;		/* RECORD_REQUEST */
	u32 service;
	u64 id;
	u64 begun;		/* arrival; of a call the send */
	u64 first;		/* read; of a call arrival of the answer */
	u64 read;		/* the last of it was; of a call the answer */
	u64 served;		/* first send of the answer */
	u64 last;		/* and the last */
	u64 handed;		/* the thread that sent was woken by the one that read */
	u64 link;		/* the connection, by the same number at both ends */
	u64 cause;		/* of a call that of the request it is made for, 0: not known */
	u32 reader, sender;
	u32 tgid;
	u32 sends;
	u8 sampled;
	u8 is_call;
	u8 is_first;		/* of its connection, as far as was seen */
	u8 pad[5];
};

#endif
