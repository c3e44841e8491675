/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * A call that is refused, a sleep that the thread chose, and the same call
 * again: so a thread waits for what the call wants, and no account shows it.
 */
#ifndef WHYLAG_TRIES_H
#define WHYLAG_TRIES_H

#include "asked.h"
#include "paths.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct retry_key);
	__type(value, struct retry_sum);
} retry_sums SEC(".maps");

#define ENOENT		2
#define EINTR		4
#define EACCES		13
#define EBUSY		16
#define EEXIST		17
#define ETIMEDOUT	110
#define ECONNREFUSED	111
#define EINPROGRESS	115

#define FLOCK_UNLOCK	8
#define FCNTL_SETLK	6
#define FCNTL_OFD_SETLK	37
#define FCNTL_UNLCK	2

#define SOL_SOCKET	1
#define SO_ERROR	4

/* Other calls between two tries, at most: a line of a log, say. */
#define TRY_OTHERS	4
/* Who finds a lock file looks whose it is; */
#define TRY_OTHERS_OF_FILE	16
/* and a connection is made of many calls: a name is looked up, a socket made, set up, and closed. */
#define TRY_OTHERS_OF_CONNECT	64

const volatile u16 connect_call;	/* their numbers */
const volatile u16 writev_call;

/* Bytes at both ends of what is written by which it is known again. */
#define TRY_DATA_ENDS	64

/* Refused where another has what is wanted, or nobody gives it; who finds nothing to read waits for work. */
static __always_inline bool is_refusal(u32 kind, u32 error)
{
	const u64 kinds = 1 << CALL_OTHER | 1 << CALL_SEND | 1 << CALL_WRITE |
			  1 << CALL_FILE_LOCK | 1 << CALL_FCNTL;

	switch (error) {
	case EAGAIN:
	case EBUSY:
		return kinds >> (kind & 63) & 1;
	case EACCES:
		return kind == CALL_FCNTL;
	case EEXIST:
		return is_path_call(kind);
	case ENOENT:
		return kind == CALL_CONNECT;
	case ECONNREFUSED:
		return kind == CALL_CONNECT || kind == CALL_SOCKET_OPTION;
	}
	return false;
}

/*
 * Alone no proof that the thread waits: what there is already may do as well (mkdir -p), and a
 * service that is not there may be one that the program can do without (nscd, syslog). It has to
 * get what it asks for in the end.
 */
static __always_inline bool is_proven_later(struct thread *t)
{
	return t->try_error == ENOENT || (t->try_error == EEXIST && t->try_others);
}

/* Adds the sleeps of the current thread that are not in retry_sums yet. */
__noinline int keep_tries(bool won)
{
	struct thread *t = current_thread();
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct retry_key key = {};
	struct retry_sum *sum;

	if (!t || !cpu || !t->try_row_ns)
		return 0;
	key.object = t->try_object;
	key.tgid = t->tgid;
	key.call = t->try_call;
	key.error = t->try_error;
	key.pipe = t->try_pipe;
	key.account = t->try_account;
	sum = bpf_map_lookup_elem(&retry_sums, &key);
	if (!sum) {
		if (!t->try_count)
			return 0;
		if (bpf_map_update_elem(&retry_sums, &key, &cpu->asked, BPF_NOEXIST) ==
		    -7 /* E2BIG */)
			lost(LOSS_RETRY);
		sum = bpf_map_lookup_elem(&retry_sums, &key);
		if (!sum)
			return 0;
	}
	__sync_fetch_and_add(&sum->ns, t->try_ns);
	__sync_fetch_and_add(&sum->count, t->try_count);
	if (t->try_max_ns > sum->max_ns)
		sum->max_ns = t->try_max_ns;
	if (won)
		__sync_fetch_and_add(&sum->won_ns, t->try_row_ns);
	t->try_ns = t->try_count = t->try_max_ns = 0;
	return 0;
}

static __always_inline u64 mix_all(u64 hash, const u64 *words)
{
	u32 i;

	for (i = 0; i < TRY_DATA_ENDS / sizeof(u64); i++)
		hash = mix(hash, words[i]);
	return hash;
}

/*
 * A number of what the current thread's call wants to write; 0 if it cannot be read. Who waits for
 * room writes the same again; who drops what finds none comes with something else.
 */
__noinline u64 data_of_write(u16 call)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 vector[2] = { ARGUMENT_2(regs), ARGUMENT_3(regs) }; /* a struct iovec: where, and how long */
	u64 words[TRY_DATA_ENDS / sizeof(u64)] = {};
	u64 hash;
	u32 n;

	if (call == writev_call &&
	    bpf_probe_read_user(vector, sizeof(vector), (void *)ARGUMENT_2(regs)))
		return 0;
	n = vector[1] < TRY_DATA_ENDS ? vector[1] : TRY_DATA_ENDS;
	if (bpf_probe_read_user(words, n, (void *)vector[0]))
		return 0;
	hash = mix_all(vector[1], words);
	if (n == TRY_DATA_ENDS &&
	    !bpf_probe_read_user(words, sizeof(words), (void *)(vector[0] + vector[1] - TRY_DATA_ENDS)))
		hash = mix_all(hash, words);
	return hash ?: 1;
}

/* The port that a call of one of these kinds goes to, which cpu->asked has; 0: to none. */
static __always_inline u16 asked_port(void)
{
	u32 zero = 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);

	return cpu ? cpu->asked.name.port : 0;
}

/* A name has several addresses, all of which are tried before the thread sleeps. */
static __always_inline bool is_same_service(struct thread *t)
{
	return t->try_port && t->try_port == asked_port() && !t->try_slept;
}

/* The current thread was refused what it asks for. */
__noinline int refuse(u16 call, u32 kind, u32 error)
{
	struct thread *t = current_thread();
	u64 object;
	u32 mode;
	bool same;

	if (!t)
		return 0;
	object = asked_for(kind, &mode);
	/* What is looked for on the way to another try is none. */
	if (!object || (error == ENOENT && t->try_error == ECONNREFUSED))
		return 0;
	same = t->try_error == error && t->try_call == call;
	if (same && (t->try_object == object || is_same_service(t))) {
		t->try_slept = t->try_others = 0;
		return 0;
	}
	t->try_call = call;
	t->try_error = error;
	t->try_object = object;
	t->try_port = has_name(kind) ? asked_port() : 0;
	t->try_pipe = (mode & S_IFMT) == S_IFIFO;
	t->try_data = t->try_pipe ? data_of_write(call) : 0;
	t->try_slept = t->try_others = 0;
	t->try_row_ns = t->try_ns = t->try_count = t->try_max_ns = 0;
	return 0;
}

/* A call of the current thread failed. */
__noinline int try_fails(u16 call, u32 error)
{
	u32 kind = call_kinds[call & (CALLS_MAX - 1)];
	struct thread *t = current_thread();
	bool again;

	if (!t)
		return 0;
	again = t->try_again;
	t->try_again = 0;
	if (is_refusal(kind, error))
		refuse(call, kind, error);
	else if (again && error != EINPROGRESS && error != EINTR)
		t->try_error = 0;
	return 0;
}

/* A call of the current thread, of which one was refused, did not fail: it has what it asked for, or connects. */
__noinline int try_succeeds(u32 kind)
{
	struct thread *t = current_thread();
	bool again;
	u32 mode;

	if (!t)
		return 0;
	again = t->try_again;
	t->try_again = 0;
	if (again || kind == CALL_CONNECT || kind == CALL_SOCKET_OPTION) {
		asked_for(kind, &mode);
		if (again || is_same_service(t)) {
			keep_tries(true);
			t->try_error = 0;
		}
	}
	return 0;
}

/* The current thread has asked a socket how its connection came out. */
__noinline int asked_socket(void)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct thread *t = current_thread();
	u32 error;

	if (!t || ARGUMENT_2(regs) != SOL_SOCKET || ARGUMENT_3(regs) != SO_ERROR ||
	    bpf_probe_read_user(&error, sizeof(error), (void *)ARGUMENT_4(regs)))
		return 0;
	if (error == ECONNREFUSED) {
		/* As where connect says so itself. */
		count_error(t, connect_call, error, bpf_ktime_get_ns());
		refuse(connect_call, CALL_SOCKET_OPTION, error);
	} else if (!error && t->try_error) {
		try_succeeds(CALL_SOCKET_OPTION);
	}
	return 0;
}

/*
 * A call of a thread that was refused something ends: the sleep in it, if it chose that. Where it
 * wants a name it may also wait in poll or for a futex until a time is over, as event loops and
 * runtimes do.
 */
static __always_inline void add_sleep(struct thread *t, u32 kind, long ret)
{
	u32 account = ACCT_TIMER;
	u64 ns = had_in_call(t, ACCT_TIMER);

	if (!ns && (t->try_error == EEXIST || t->try_call == connect_call)) {
		if (kind == CALL_POLL && !ret)
			account = ACCT_POLL;
		else if (kind == CALL_FUTEX && ret == -ETIMEDOUT)
			account = ACCT_FUTEX;
		else
			return;
		ns = had_in_call(t, account);
	}
	if (!ns)
		return;
	/* It was counted when it began. */
	if (kind != CALL_TIMER && t->try_others)
		t->try_others--;
	if (t->try_slept && t->try_account != account)
		return;
	t->try_account = account;
	t->try_slept += ns;
}

/*
 * The current thread lets go of a lock: by the call that asks for one, but not for it. Who is refused
 * one lock lets go of the others before it sleeps.
 */
static __always_inline bool lets_go(u32 kind)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 command = ARGUMENT_2(regs);
	u16 type; /* the first member of struct flock */

	if (kind == CALL_FILE_LOCK)
		return command & FLOCK_UNLOCK;
	if (kind != CALL_FCNTL || (command != FCNTL_SETLK && command != FCNTL_OFD_SETLK))
		return false;
	return !bpf_probe_read_user(&type, sizeof(type), (void *)ARGUMENT_3(regs)) &&
	       type == FCNTL_UNLCK;
}

static __always_inline u32 others_at_most(struct thread *t)
{
	if (t->try_call == connect_call)
		return TRY_OTHERS_OF_CONNECT;
	return t->try_error == EEXIST ? TRY_OTHERS_OF_FILE : TRY_OTHERS;
}

/* The current thread makes the call again that was refused, or gave that up and begins anew. */
static __always_inline void tries_again(struct thread *t)
{
	u64 ns = t->try_slept;

	if (t->try_data && data_of_write(t->try_call) != t->try_data) {
		t->try_error = 0;
		return;
	}
	t->try_again = 1;
	if (ns) {
		t->try_row_ns += ns;
		t->try_ns += ns;
		t->try_count++;
		if (ns > t->try_max_ns)
			t->try_max_ns = ns;
		if (!is_proven_later(t))
			keep_tries(false);
	}
	t->try_slept = t->try_others = 0;
}

/* The current thread, of which a call was refused, begins another. */
__noinline int step_of_try(u32 kind, u16 nr)
{
	struct thread *t = current_thread();
	u32 mode;

	if (!t || kind == CALL_TIMER)
		return 0;
	if (nr == t->try_call && asked_for(kind, &mode) == t->try_object &&
	    (t->try_slept || !lets_go(kind)))
		tries_again(t);
	else if (++t->try_others > others_at_most(t))
		t->try_error = 0;
	return 0;
}

#endif
