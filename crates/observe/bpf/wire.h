/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What crosses between the kernel and the recorder: its numbers are here, sums in sums.h, and what is
 * sent one by one in records.h. The Rust side is generated: of the structs from their BTF, of the enums
 * and the numbers by build/header.rs. src/wire.rs says what each enumerator means.
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
	END_PEER,		/* the answer that it had asked a peer for that is not recorded */
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

#include "sums.h"
#include "records.h"

#endif
