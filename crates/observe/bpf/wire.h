/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What crosses between the kernel and the recorder. The Rust side is generated:
 * of the structs from their BTF, of the enums and the numbers defined here by
 * build/header.rs. src/wire.rs says what each enumerator means.
 */
#ifndef WHYLAG_WIRE_H
#define WHYLAG_WIRE_H

/* Whose threads are watched: a command from its exec on. */
enum target_kind {
	TARGET_COMMAND,
	TARGET_PROCESS,
	TARGET_THREAD,
	TARGET_HOST,
	TARGET_CGROUP,
};

/* Accounts: model::Account by number. */
enum account {
	ACCT_UNACCOUNTED,
	ACCT_USER,
	ACCT_SYSCALL,		/* kept per call in thread.calls */
	ACCT_KERNEL,
	ACCT_SPIN,
	ACCT_HARDIRQ,
	ACCT_SOFTIRQ,
	ACCT_STOLEN,
	ACCT_RUNNABLE_WAKEUP,
	ACCT_RUNNABLE_PREEMPTED,
	ACCT_THROTTLED,
	ACCT_RUNNING,		/* user or kernel is not known */
	ACCT_FUTEX,		/* the first of the sleeping ones */
	ACCT_MMAP_LOCK_READ,
	ACCT_MMAP_LOCK_WRITE,
	ACCT_RWSEM,
	ACCT_MUTEX,
	ACCT_RT_MUTEX,
	ACCT_OTHER_LOCK,
	ACCT_FAULT_MINOR,
	ACCT_FAULT_MAJOR,
	ACCT_DISK,
	ACCT_DIRTY_THROTTLE,
	ACCT_SOCKET_RECEIVE,
	ACCT_SOCKET_SEND,
	ACCT_SOCKET_ACCEPT,
	ACCT_SOCKET_CONNECT,
	ACCT_POLL,
	ACCT_PIPE_READ,
	ACCT_PIPE_WRITE,
	ACCT_TIMER,
	ACCT_CHILD,
	ACCT_FILE_LOCK,
	ACCT_STOPPED,
	ACCT_OTHER,
	ACCT_UNINTERRUPTIBLE,
	ACCT_MAX,
};
#define ACCT_BLOCKED	ACCT_FUTEX

/* What stands at the end of a chain of waits: model::ChainEnd by number. */
enum chain_end {
	END_UNKNOWN,		/* further back than the history of the waker */
	END_CPU,		/* it ran */
	END_RUN_QUEUE,		/* it was ready and had no CPU */
	END_THROTTLED,
	END_DISK,
	END_FAULT,		/* a page came from disk */
	END_KERNEL,		/* in the kernel, for what no watched thread gave up */
	END_STOPPED,
	END_TIMER,		/* it slept for as long as it had chosen */
	END_OUTSIDE,		/* an interrupt: another host, a device */
	END_UNWATCHED,		/* a thread that is not recorded */
	END_IDLE,		/* who was asked had nothing to do until somebody else asked it */
	END_TIMEOUT,		/* nobody let it go on in the time that it had for that */
	END_MAX,
};

/* How the arguments of a system call say what it waits for (call_kinds). */
enum call_kind {
	CALL_OTHER,
	CALL_FUTEX,
	CALL_POLL,
	CALL_TIMER,
	CALL_CHILD,
	CALL_ACCEPT,
	CALL_CONNECT,
	CALL_RECEIVE,
	CALL_SEND,
	CALL_FILE_LOCK,
	CALL_FCNTL,
	CALL_READ,
	CALL_WRITE,
	CALL_DISK,
	CALL_YIELD,
	CALL_COMPLETION,
	CALL_SEMAPHORES,
	CALL_MESSAGES,
	CALL_MESSAGE_SEND,
	CALL_SIGNALS,
	CALL_PATH_1,		/* these may make a file: where they have its path */
	CALL_PATH_2,
	CALL_PATH_3,
	CALL_PATH_4,
	CALL_SOCKET_OPTION,
};

#define CALLS_MAX	512	/* system call numbers below this are distinguished */
#define CALL_SLOTS	16	/* calls of a thread accumulated without a map */
#define NO_CALL		0xffff

enum context { CTX_TASK, CTX_SOFTIRQ, CTX_HARDIRQ };

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

/* One thread's accounts: from the iterator, and when it dies. */
/* CPUs in a mask of those that a thread may run on; hosts with more say nothing of them. */
#define MASK_CPUS	1024
#define MASK_WORDS	16

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

/* Threads in a block of what is remembered of them, 8.6 MB. */
#define BLOCK_THREADS	2048

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

/* What is counted when it is lost. */
enum loss {
	LOSS_EVENT_RING,	/* outlier: its ring was full */
	LOSS_RARE_RING,		/* thread end, stack, exec ...: ring full */
	LOSS_THREAD,		/* no room to watch a thread */
	LOSS_WAIT,		/* wait_sums full */
	LOSS_HOLD,		/* hold_sums or mm_locks full */
	LOSS_CALL,		/* evicted_calls full */
	LOSS_REQUEST,		/* block requests in flight beyond the map */
	LOSS_NEGATIVE,		/* clock went backwards between CPUs */
	LOSS_NESTED_LOCK,	/* contention inside contention */
	LOSS_READER,		/* readers of one mmap_lock beyond the slots */
	LOSS_SWITCH,		/* a task woke or came to a CPU unreported */
	LOSS_PATH,		/* path_sums full */
	LOSS_CALL_ERROR,	/* call_errors full */
	LOSS_SEND,		/* send_sums full */
	LOSS_RETRY,		/* retry_sums full */
	LOSS_PRESENCE,		/* presences full */
	LOSS_BESIDE,		/* beside_sums full */
	LOSS_SERVICE,		/* ports and peers beyond the slots, counted together */
	LOSS_CONNECTION,	/* no room to follow a connection */
	LOSS_HISTOGRAM,		/* value without a histogram: all slots are taken */
	LOSS_SAMPLE,		/* path_sums full: thread and user stack of a sample */
	LOSS_PAGE_READ,		/* page_read_sums full */
	LOSS_MAX,
};

/* Where runs are counted; the cost shows these names in small letters. */
enum program {
	PROG_SCHED_SWITCH,
	PROG_SCHED_WAKING,
	PROG_SCHED_MIGRATE_TASK,
	PROG_SCHED_PROCESS_FORK,
	PROG_SCHED_PROCESS_EXEC,
	PROG_SCHED_PROCESS_EXIT,
	PROG_SYS_ENTER,
	PROG_SYS_EXIT,
	PROG_CONTENTION_BEGIN,
	PROG_CONTENTION_END,
	PROG_MMAP_LOCK_START_LOCKING,
	PROG_MMAP_LOCK_ACQUIRE_RETURNED,
	PROG_MMAP_LOCK_RELEASED,
	PROG_PAGE_FAULT_USER,
	PROG_PAGE_FAULT_KERNEL,
	PROG_IRQ_HANDLER,
	PROG_SOFTIRQ,
	PROG_IRQ_VECTORS,
	PROG_BLOCK_RQ,
	PROG_SIGNAL_GENERATE,
	PROG_RECLAIM_COMPACTION,
	PROG_WRITEBACK,
	PROG_CPU_CLOCK,
	PROG_TIMERS,
	PROG_KFREE_SKB,
	PROG_TCP_RETRANSMIT_SKB,
	PROG_SK_DATA_READY,
	PROG_SOCK_RECV_LENGTH,
	PROG_SOCK_SEND_LENGTH,
	PROG_INET_SOCK_SET_STATE,
	PROG_PAGE_CACHE,
	PROG_MAX,
};

#endif
