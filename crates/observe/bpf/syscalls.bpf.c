/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * System calls: which one a thread is in, how long each took. The hottest
 * path of the recorder: one storage look-up and one clock read at each end,
 * per-CPU histograms without atomics, nothing for threads not watched.
 */
#include "threads.h"
#include "tries.h"

/*
 * Sums of calls that had to leave their slot. Those of threads that have ended stay until the recorder's
 * next look, a second later: several of each process of a storm of forks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct call_key);
	__type(value, u64);
} evicted_calls SEC(".maps");

static __always_inline bool is_in_slot(struct thread *t, u32 at, u16 nr)
{
	struct call_sum *slot = &t->calls[at & (CALL_SLOTS - 1)];

	return slot->nr == nr && slot->hist;
}

/* Which of its two slots a call is to have: one that is free or has it already, but no histogram. */
static __always_inline u32 slot_for(struct thread *t, u16 nr)
{
	struct call_sum *first = &t->calls[first_slot(nr)];

	return !first->used || first->nr == nr ? first_slot(nr) : second_slot(nr);
}

/* Makes room for another call in one of its slots: the old sum goes to a map. */
__noinline int change_slot(u16 nr)
{
	struct thread *t = current_thread();
	struct call_sum *slot;
	struct call_key key = {};
	u64 *sum;

	if (!t)
		return 0;
	t->call_at = slot_for(t, nr);
	slot = call_slot(t);
	if (slot->used && slot->ns) {
		key.first_ns = t->first_ns;
		key.tid = t->tid;
		key.nr = slot->nr;
		sum = bpf_map_lookup_elem(&evicted_calls, &key);
		if (sum) {
			__sync_fetch_and_add(sum, slot->ns);
		} else if (bpf_map_update_elem(&evicted_calls, &key, &slot->ns, BPF_ANY)) {
			t->accounts[ACCT_UNACCOUNTED] += slot->ns;
			lost(LOSS_CALL);
		}
	}
	slot->used = 1;
	slot->nr = nr;
	slot->ns = 0;
	slot->hist = hist_slot(t->tgid, HIST_SYSCALL, nr);
	return 0;
}

/*
 * Calls that do nothing but wait, and then a send: the thread held its send
 * back, as a limit of its rate makes it do. Loops that read the clock by the
 * vDSO in between are seen through; loops with other calls are not.
 */
__noinline int step_of_hold(u32 kind, u16 nr, u64 now)
{
	struct thread *t = current_thread();
	u64 ns;

	if (!t)
		return 0;
	if (kind == CALL_YIELD || kind == CALL_TIMER) {
		if (!t->held_since) {
			t->held_since = now;
			t->held_call = nr;
			t->held_calls = 0;
		}
		t->held_calls++;
		return 0;
	}
	if (kind == CALL_SEND) {
		ns = now - t->held_since;
		hist_count(hist_slot(t->tgid, HIST_HELD_SEND, t->held_call), ns);
		if (ns >= threshold_ns)
			send_event(EVENT_HELD_SEND, t->tid, t->tgid, t->held_since, ns,
				   (u64)t->held_calls << 16 | t->held_call, NULL);
	}
	t->held_since = 0;
	return 0;
}

/* An event loop polls again: so long nobody was served but those of the turn. */
static __always_inline void turn_ends(struct thread *t, u64 now)
{
	if (!t->turn_since)
		return;
	if (!t->turn_hist)
		t->turn_hist = hist_slot(t->tgid, HIST_LOOP_TURN, 0);
	hist_count(t->turn_hist, now - t->turn_since);
	t->turn_since = 0;
}

static __always_inline void call_begins(struct cpu *cpu, struct thread *t, u32 kind, long id)
{
	u64 now = bpf_ktime_get_ns();

	charge(cpu, t, now);
	t->in_call_of = 0;
	if (kind == CALL_POLL)
		turn_ends(t, now);
	if (t->held_since || kind == CALL_YIELD || kind == CALL_TIMER)
		step_of_hold(kind, id, now);
	if (t->try_error)
		step_of_try(kind, id);
	if (is_in_slot(t, first_slot(id), id))
		t->call_at = first_slot(id);
	else if (is_in_slot(t, second_slot(id), id))
		t->call_at = second_slot(id);
	else
		change_slot(id);
	t->call = id;
	t->call_start = now;
	t->fault = 0;
	t->longest = 0;
	t->base = t->open = ACCT_SYSCALL;
}

/* A thread sends for the first time; what goes to a file or a terminal goes to no other thread. */
__noinline int first_send(u32 fd)
{
	struct thread *t = current_thread();
	u32 mode;

	if (!t)
		return 0;
	inode_of(file_here(fd), &mode);
	if ((mode & S_IFMT) != S_IFREG && (mode & S_IFMT) != S_IFCHR)
		t->fresh = 0;
	return 0;
}

/* Who sends and then waits on the same descriptor waits for an answer. */
static __always_inline void note_sent(struct thread *t, u32 kind, struct pt_regs *regs)
{
	if (kind == CALL_MESSAGE_SEND)
		t->fresh = t->got = 0;
	if (kind != CALL_SEND && kind != CALL_WRITE)
		return;
	t->got = 0;
	t->sent_to = (u32)ARGUMENT_1(regs) + 1;
	if (t->fresh)
		first_send((u32)ARGUMENT_1(regs));
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct cpu *cpu = cpu_of(current, PROG_SYS_ENTER);
	struct thread *t;
	u32 kind;

	if (!cpu || !cpu->slot)
		return 0;
	t = this_thread(cpu);
	if (!t || !enter(cpu))
		return 0;
	if (t->binding)
		step_of_binding(0, 0);
	id = call_numbered(current, id);
	kind = call_kinds[id & (CALLS_MAX - 1)];
	call_begins(cpu, t, kind, id);
	note_sent(t, kind, regs);
	leave(cpu);
	return 0;
}

/* Keeps a long call whole. */
__noinline int send_call(u64 now, s64 result)
{
	u32 zero = 0, i;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct thread *t = current_thread();
	struct outlier_record *o;
	u64 user_stack, copy, elsewhere = 0;

	if (!cpu || !t)
		return 0;
	user_stack = user_stack_here(cpu, t->tgid);
	copy = copy_here(t, user_stack);
	o = reserve(&outliers, sizeof(*o));
	if (!o) {
		cpu->losses[LOSS_EVENT_RING]++;
		return 0;
	}
	o->type = RECORD_OUTLIER;
	o->kind = OUTLIER_SYSCALL;
	o->tid = t->tid;
	o->tgid = t->tgid;
	o->cpu = bpf_get_smp_processor_id();
	o->call = t->call;
	o->has_result = 1;
	o->start_ns = t->call_start;
	o->duration_ns = now - t->call_start;
	o->result = result;
	o->user_stack = user_stack;
	o->copy = copy;
	call_arguments(bpf_get_current_task_btf(), o->args);
	for (i = 0; i < ACCT_MAX; i++) {
		u64 ns = had_in_call(t, i);

		o->breakdown[i] = ns;
		elsewhere += ns;
	}
	o->breakdown[ACCT_SYSCALL] = o->duration_ns - elsewhere;
	if (t->longest)
		o->sleep = t->call_sleep;
	else
		__builtin_memset(&o->sleep, 0, sizeof(o->sleep));
	o->sleep.holder = t->holder;
	bpf_get_current_comm(o->comm, sizeof(o->comm));
	bpf_ringbuf_submit(o, ring_flags(&outliers));
	return 0;
}

/* What came of a call for a thread of which one was refused. */
static __always_inline void step_after_try(struct thread *t, u32 kind, long ret)
{
	if (ret >= 0 && (t->try_again || kind == CALL_CONNECT))
		try_succeeds(kind);
	if (t->try_error)
		add_sleep(t, kind, ret);
}

static __always_inline void call_ends(struct cpu *cpu, struct thread *t, u32 kind, long ret)
{
	u64 now = bpf_ktime_get_ns(), ns;

	charge(cpu, t, now);
	if (t->pending)
		send_pending(t);
	if (t->call != NO_CALL && t->call_start) {
		ns = now - t->call_start;
		count_here(call_slot(t)->hist, ns);
		if (ns >= threshold_ns)
			send_call(now, ret);
	}
	if (ret < 0 && ret >= -4095 && t->call != NO_CALL) {
		count_error(t, t->call, -ret, now);
		send_refused(t->tgid, t->call, -ret);
		try_fails(t->call, -ret);
	}
	if (t->call != NO_CALL && ret >= 0 && kind == CALL_POLL)
		t->turn_since = now;
	if (kind == CALL_SOCKET_OPTION && !ret)
		asked_socket();
	if (t->try_error)
		step_after_try(t, kind, ret);
	if (t->holder.since)
		t->holder.since = t->holder.until = 0;
	t->call = NO_CALL;
	t->call_start = 0;
	t->fault = 0;
	t->dirty_pause = 0;
	t->lock = t->spin_lock = 0;
	t->base = t->open = ACCT_USER;
}

/* Who connects asks, and who accepts answers; what has been received is the answer. */
static __always_inline void note_roles(struct thread *t, u32 kind, struct pt_regs *regs,
				       long ret)
{
	if (kind == CALL_RECEIVE || kind == CALL_READ) {
		if (t->sent_to && ret >= 0 && t->sent_to == (u32)ARGUMENT_1(regs) + 1)
			t->sent_to = 0;
	} else if (kind == CALL_ACCEPT && ret >= 0) {
		note_role(t->tgid, ret, ROLE_SERVER);
		find_service(t->tgid, ret);
	} else if (kind == CALL_CONNECT)
		note_role(t->tgid, (u32)ARGUMENT_1(regs), ROLE_CLIENT);
}

/* Who polls has nothing else to do: it looks again, and less often if that takes longer. */
static __always_inline bool is_in_vain(u32 kind, long ret)
{
	return ret == -EAGAIN || kind == CALL_YIELD || (kind == CALL_POLL && !ret);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	struct cpu *cpu = this_cpu(PROG_SYS_EXIT);
	struct thread *t;
	u32 kind;

	if (!cpu || !cpu->slot)
		return 0;
	t = this_thread(cpu);
	if (!t || !enter(cpu))
		return 0;
	kind = call_kinds[t->call & (CALLS_MAX - 1)];
	if (is_in_vain(kind, ret))
		cpu->vain_calls++;
	note_roles(t, kind, regs, ret);
	call_ends(cpu, t, kind, ret);
	leave(cpu);
	return 0;
}
