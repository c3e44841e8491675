/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The sockets of watched processes: how full their queues are, what the kernel
 * dropped at them, and what TCP sent once more.
 *
 * A walk over the open files finds the sockets and gives each a note of ours
 * (socket storage); one on which somebody else is asked gets it at the first
 * send, since it may be gone before that walk comes. The frequent walk goes
 * over those notes, so it costs what the target's sockets cost, however many
 * the host has, and takes none of the locks that creating or looking up a
 * socket needs. A dropped packet finds the same note. Notes go with their
 * sockets, or with the recorder. Where the kernel refuses a walk over notes,
 * the frequent one goes over the files, too.
 */
#include "target_files.h"
#include "connections.h"
#include "socket_notes.h"

#define TCP_CA_LOSS	4	/* the retransmission timer has fired */
#define TIMER_PROBE	5	/* ICSK_TIME_LOSS_PROBE */

/* The kernel's own count of drops at a socket. */
static __always_inline u64 kernel_drops(struct sock *sk)
{
	struct numa_drop_counters *per_node = NULL;

	if (bpf_core_field_exists(sk->sk_drop_counters))
		per_node = sk->sk_drop_counters;
	if (per_node)
		return (u32)per_node->drops0.counter +
		       (u32)per_node->drops1.counter;
	return (u32)sk->sk_drops.counter;
}

/*
 * True if the socket was made during the recording: by a command, or since an
 * earlier walk over the files of its process. Its queue may be full before a
 * walk finds it. What a command inherits counts as its own.
 */
static __always_inline bool is_new(struct task_struct *task, u64 walk)
{
	struct thread *t = thread_of(task);

	if (target_kind == TARGET_COMMAND)
		return true;
	if (!t)
		return false;
	if (!t->socket_walk)
		t->socket_walk = walk;
	return t->socket_walk != walk;
}

SEC("iter/task_file")
int find_sockets(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket_note *note;
	struct sock *sk;
	bool new;

	if (!task || !file || !may_have_ours(task))
		return 0;
	new = is_new(task, ctx->meta->session_id);
	sk = sock_from(file);
	if (!sk)
		return 0;
	find_listener(sk, tgid_of(task));
	note = new_note(sk);
	if (!note)
		return 0;
	note->tgid = tgid_of(task);
	note->fd = ctx->fd;
	note->inode = file->f_inode->i_ino;
	note->drops_before = new ? 0 : kernel_drops(sk);
	return 0;
}

static __always_inline void addresses(struct queue_record *r, struct sock *sk)
{
	u16 port = sk->__sk_common.skc_dport;

	r->local_port = sk->__sk_common.skc_num;
	r->remote_port = (u16)(port >> 8 | port << 8);
	if (r->family == AF_INET6) {
		BPF_CORE_READ_INTO(&r->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&r->remote, sk, __sk_common.skc_v6_daddr);
	} else {
		*(u32 *)r->local = sk->__sk_common.skc_rcv_saddr;
		*(u32 *)r->remote = sk->__sk_common.skc_daddr;
	}
}

/* Bytes on their way; a socket in use counts itself as one. */
static __always_inline u64 sent(struct sock *sk)
{
	u32 bytes = sk->sk_wmem_alloc.refs.counter;

	return bytes ? bytes - 1 : 0;
}

#define TCP_ESTABLISHED	1
#define TCP_NAGLE_OFF	1	/* TCP_NODELAY */
#define TCP_NAGLE_CORK	2

/*
 * True if all that was written has left but less than a segment, which goes
 * out when what is on its way is acknowledged: no window is in its way, so
 * Nagle's algorithm is.
 */
static __always_inline bool held_by_nagle(struct tcp_sock *tcp)
{
	u32 rest = tcp->write_seq - tcp->snd_nxt;

	return rest && rest < tcp->mss_cache && tcp->packets_out &&
	       tcp->packets_out < tcp->snd_cwnd &&
	       tcp->write_seq - tcp->snd_una <= tcp->snd_wnd &&
	       !(BPF_CORE_READ_BITFIELD(tcp, nonagle) & (TCP_NAGLE_OFF | TCP_NAGLE_CORK));
}

static __always_inline void depths(struct queue_record *r, struct sock *sk)
{
	struct tcp_sock *tcp;

	r->send_limit = sk->sk_sndbuf;
	if (r->family == AF_UNIX) {
		r->receive = sk->sk_receive_queue.qlen;
		r->receive_limit = sk->sk_max_ack_backlog;
		r->send = sent(sk);
	} else if (r->protocol == IPPROTO_TCP && r->state == TCP_LISTEN) {
		r->receive = sk->sk_ack_backlog;
		r->receive_limit = sk->sk_max_ack_backlog;
		r->send_limit = 0;
	} else if (r->protocol == IPPROTO_TCP) {
		r->receive_limit = sk->sk_rcvbuf;
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp)
			return;
		r->receive = tcp->rcv_nxt - tcp->copied_seq;
		r->send = tcp->write_seq - tcp->snd_una;
		r->nagle = r->state == TCP_ESTABLISHED && held_by_nagle(tcp);
	} else {
		r->receive = sk->sk_backlog.rmem_alloc.counter;
		r->receive_limit = sk->sk_rcvbuf;
		r->send = sent(sk);
	}
}

/* How long ago a time in jiffies was, at most half of what fits: 99 days at 250 a second. */
static __always_inline u64 since(u32 time)
{
	return (u64)((u32)bpf_jiffies64() - time) * jiffy_ns;
}

/*
 * What this side has sent without an answer so far. Of connections on which nothing
 * happened during the recording TCP itself knows when data last came and went, to a
 * jiffy: what was sent in the one in which something came counts as answered.
 */
static __always_inline void unanswered(struct queue_record *r, struct sock *sk)
{
	struct connection *c = connection_of(sk);
	struct tcp_sock *tcp;
	u64 sent, heard;

	if (c) {
		r->role = c->role;
		r->heard_at = c->latest;
		if (c->begun > c->latest)
			r->sent_at = c->begun;
	}
	if (r->protocol != IPPROTO_TCP || r->state != TCP_ESTABLISHED)
		return;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return;
	heard = since(tcp->inet_conn.icsk_ack.lrcvtime);
	if (!r->heard_at && tcp->bytes_received)
		r->heard_at = r->time_ns - heard;
	sent = since(tcp->lsndtime);
	if (!c && tcp->bytes_sent && (sent < heard || !tcp->bytes_received))
		r->sent_at = r->time_ns - sent;
}

/* False if the page is full: then the walk comes to this socket once more. */
static __always_inline bool dump_queue(struct seq_file *to, struct sock *sk,
				       struct socket_note *note)
{
	struct queue_record r = {};
	u64 seen;

	r.family = sk->__sk_common.skc_family;
	if (r.family != AF_INET && r.family != AF_INET6 && r.family != AF_UNIX)
		return true;
	r.time_ns = bpf_ktime_get_ns();
	r.inode = note->inode;
	r.tgid = note->tgid;
	r.fd = note->fd;
	r.protocol = sk->sk_protocol;
	r.type = sk->sk_type;
	r.state = sk->__sk_common.skc_state;
	if (r.family != AF_UNIX)
		addresses(&r, sk);
	depths(&r, sk);
	unanswered(&r, sk);
	/* Where the tracepoint is silent (a full accept queue) the socket counts. */
	seen = kernel_drops(sk) - note->drops_before;
	r.drops = seen > note->drops ? seen : note->drops;
	r.drop_first = note->drop_first;
	r.drop_last = note->drop_last;
	r.drop_reason = note->drop_reason;
	r.resent = note->resent;
	r.timeouts = note->timeouts;
	r.timeout_at = note->timeout_at;
	r.timeout_after = note->timeout_after;
	r.connecting = note->connecting;
	if (bpf_seq_write(to, &r, sizeof(r)))
		return false;
	note->drop_first = 0;
	return true;
}

SEC("iter/bpf_sk_storage_map")
int dump_queues(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct socket_note *note = ctx->value;
	struct sock *sk = ctx->sk;

	if (sk && note)
		dump_queue(ctx->meta->seq, sk, note);
	return 0;
}

/* Several descriptors of several processes may be of one socket. */
SEC("iter/task_file")
int dump_queues_of_files(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = sock_of_target(ctx->task, ctx->file);
	u64 walk = ctx->meta->session_id;
	struct socket_note *note;

	if (!sk)
		return 0;
	note = bpf_sk_storage_get(&socket_notes, sk, 0, 0);
	if (note && note->walk != walk && dump_queue(ctx->meta->seq, sk, note))
		note->walk = walk;
	return 0;
}

/* rx_sk is the socket that the packet was for; the kernel knows it since 6.11. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff *skb, void *location, u32 reason,
	     struct sock *rx_sk)
{
	struct socket_note *note;
	u64 now;

	if (!only_cpu(PROG_KFREE_SKB) || stopped || !rx_sk)
		return 0;
	note = bpf_sk_storage_get(&socket_notes, rx_sk, 0, 0);
	if (!note)
		return 0;
	now = bpf_ktime_get_ns();
	if (!note->drop_first)
		note->drop_first = now;
	note->drop_last = now;
	note->drop_reason = reason;
	__sync_fetch_and_add(&note->drops, 1);
	return 0;
}

/*
 * A segment is sent once more: because its timer fired, because a probe is to
 * find out whether the last one was lost, or because later ones have arrived.
 */
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock *sk)
{
	struct inet_connection_sock *tcp = (struct inet_connection_sock *)sk;
	struct socket_note *note;
	bool timer, probe;

	if (!only_cpu(PROG_TCP_RETRANSMIT_SKB) || stopped || !sk)
		return 0;
	note = bpf_sk_storage_get(&socket_notes, sk, 0, 0);
	if (!note)
		return 0;
	__sync_fetch_and_add(&note->resent, 1);
	/* Acknowledged data sets the number of fruitless tries back to 0. */
	timer = BPF_CORE_READ_BITFIELD_PROBED(tcp, icsk_ca_state) == TCP_CA_LOSS &&
		BPF_CORE_READ(tcp, icsk_retransmits);
	probe = BPF_CORE_READ_BITFIELD_PROBED(tcp, icsk_ca_state) < TCP_CA_LOSS - 1 &&
		BPF_CORE_READ(tcp, icsk_pending) == TIMER_PROBE;
	if (!timer && !probe)
		return 0;
	note->timeout_after = timer ? (u64)BPF_CORE_READ(tcp, icsk_rto) * jiffy_ns : 0;
	note->connecting = BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_SYN_SENT;
	note->timeout_at = bpf_ktime_get_ns();
	__sync_fetch_and_add(&note->timeouts, 1);
	return 0;
}
