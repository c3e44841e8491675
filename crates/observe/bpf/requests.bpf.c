/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* Where requests and calls are seen: data arrives, is read, is sent. */
#include "target_files.h"
#include "requests.h"
#include "socket_notes.h"

#define MSG_PEEK	2

/* Comes before whoever waits for the data is woken; also of those that nobody watches. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_data_ready, const struct sock *const_sk)
{
	struct cpu *cpu = only_cpu(PROG_SK_DATA_READY);
	struct sock *sk = (struct sock *)const_sk;
	struct connection *c;

	if (!cpu || stopped || !roles_known || !sk)
		return 0;
	c = connection_of(sk);
	if (!c)
		c = unaccepted(sk);
	if (!c)
		return 0;
	c->latest = bpf_ktime_get_ns();
	if (c->role == ROLE_SERVER)
		cpu->request_at = c->latest;
	if (c->role == ROLE_CLIENT && c->begun && !c->arrived)
		note_peer(sk, c);
	if (c->datagrams)
		packets_arrive(sk, c->latest);
	else if (!c->arrived)
		c->arrived = c->latest;
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_received, struct sock *sk, int length, int flags)
{
	struct connection *c;
	struct cpu *cpu;
	struct thread *t;

	/* Half of the reads of a busy server find nothing: before all else. */
	if (!sk || !roles_known || length < 0 || flags & MSG_PEEK)
		return 0;
	cpu = this_cpu(PROG_SOCK_RECV_LENGTH);
	if (!cpu || !cpu->slot)
		return 0;
	t = this_thread(cpu);
	if (!t)
		return 0;
	if (t->sent_to & SENT_TO_INODE && t->sent_to == sent_to_inode(inode_of_sock(sk)))
		t->sent_to = 0;
	c = connection_of(sk);
	if (length == 0) {
		if (c && c->role == ROLE_SERVER)
			answer_ends(c);
		return 0;
	}
	if (!c && pair_transfers(sk, false))
		return 0;
	if (!c)
		c = meet_connection(sk, t->tgid, false);
	if (!c)
		return 0;
	if (c->datagrams)
		packet_read(sk, c, t);
	else if (c->role == ROLE_SERVER)
		request_read(sk, c, t);
	else
		reply_read(c, t);
	return 0;
}

/* Where a watched thread asks, the socket's queues are looked at from its first send on. */
static __always_inline struct connection *meet_by_send(struct sock *sk, u32 tgid)
{
	struct connection *c = meet_connection(sk, tgid, true);

	if (c && c->role == ROLE_CLIENT)
		note_asking(sk, tgid);
	return c;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sent, struct sock *sk, int length, int flags)
{
	struct cpu *cpu = this_cpu(PROG_SOCK_SEND_LENGTH);
	struct connection *c;
	struct thread *t;

	if (!cpu || !cpu->slot || !sk || !roles_known || length <= 0)
		return 0;
	t = this_thread(cpu);
	if (!t)
		return 0;
	c = connection_of(sk);
	/* Who answers waits for no answer there. */
	if (calls_off && (!c || c->role != ROLE_SERVER))
		t->sent_to = sent_to_inode(inode_of_sock(sk));
	if (!c && pair_transfers(sk, true))
		return 0;
	if (!c)
		c = meet_by_send(sk, t->tgid);
	if (!c)
		return 0;
	if (c->role == ROLE_CLIENT && sk->sk_protocol == IPPROTO_UDP)
		packet_asks(sk, c);
	if (c->datagrams)
		packet_sent(c, t);
	else if (c->role == ROLE_SERVER)
		answer_sent(c, t);
	else
		call_sent(c, t);
	return 0;
}

/*
 * This side closes the connection, and its memory goes with it: a server as soon as it has answered, as many
 * do, or who called, because it waits no longer.
 */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, const struct sock *const_sk, int before, int now)
{
	struct sock *sk = (struct sock *)const_sk;
	struct connection *c;

	if (before != TCP_ESTABLISHED || (now != TCP_FIN_WAIT1 && now != TCP_CLOSE))
		return 0;
	if (!only_cpu(PROG_INET_SOCK_SET_STATE) || stopped || !roles_known || !sk)
		return 0;
	c = connection_of(sk);
	if (!c)
		return 0;
	if (c->role == ROLE_CLIENT)
		call_given_up(c);
	else
		answer_ends(c);
	return 0;
}

/*
 * Gives the answer if nothing was added to it for a while, and counts the
 * connection. What goes on meanwhile on the connection comes later.
 */
static __always_inline void end_idle_answer(struct connection *c)
{
	connections_walked++;
	if (c->begun && !c->served && c->role == ROLE_SERVER && !idle_ns)
		still_open(c);
	if (c->begun && c->served && c->role == ROLE_SERVER &&
	    bpf_ktime_get_ns() - c->last >= idle_ns)
		answer_ends(c);
}

SEC("iter/bpf_sk_storage_map")
int end_answers(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct connection *c = ctx->value;

	if (ctx->sk && c)
		end_idle_answer(c);
	return 0;
}

/* Of packets that nobody has answered only the peers that sent them are known. */
SEC("iter/bpf_map_elem")
int find_open_of_peers(struct bpf_iter__bpf_map_elem *ctx)
{
	struct connection *c = ctx->value;

	if (ctx->key && c && c->begun && !c->served)
		still_open(c);
	return 0;
}

/* Where the kernel refuses that walk. */
SEC("iter/task_file")
int end_answers_of_files(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = sock_of_target(ctx->task, ctx->file);
	struct connection *c;

	if (!sk)
		return 0;
	c = connection_of(sk);
	if (!c || c->walk == ctx->meta->session_id)
		return 0;
	c->walk = ctx->meta->session_id;
	end_idle_answer(c);
	return 0;
}
