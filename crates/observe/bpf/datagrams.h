/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Requests at a socket of UDP: any number of peers ask there, and several of
 * their requests may be worked on at once. One peer waits for its answer
 * before it asks again, as a rule; so each has its own state, which a packet
 * finds by the address that it came from, and an answer by the one that it is
 * sent to.
 */
#ifndef WHYLAG_DATAGRAMS_H
#define WHYLAG_DATAGRAMS_H

#include "connections.h"

/* The packets in the queue of a socket; they are read in this order. */
#define PACKETS	64		/* a power of two */
struct packet {
	u64 arrived;
	u64 peer;		/* 0: not known */
	u64 skb;		/* its address: of no other as long as it is in the queue */
};

struct packets {
	u64 put, taken;
	u64 busy;		/* a CPU notes what has arrived */
	u64 unnoted;		/* that are in the queue in front of those that were noted */
	u64 is_met;		/* that number is known */
	struct packet at[PACKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct packets);
} packets SEC(".maps");

/* The requests of peers, by their links; who has not asked for longest makes room. 1 MB. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct connection);
} peers SEC(".maps");

static __always_inline u64 peer_number(u32 address[4], u16 port)
{
	return end_number(address, bpf_ntohs(port)) ?: 1;
}

/* Who sent a packet that has arrived. */
__noinline u64 sender_of(u64 at)
{
	struct sk_buff *skb = (void *)at;
	unsigned char *head = BPF_CORE_READ(skb, head);
	unsigned char *ip = head + BPF_CORE_READ(skb, network_header);
	unsigned char *udp = head + BPF_CORE_READ(skb, transport_header);
	u32 address[4] = { 0, 0, bpf_htonl(0xffff) };
	u8 version;
	u16 port;

	if (bpf_probe_read_kernel(&version, sizeof(version), ip) ||
	    bpf_probe_read_kernel(&port, sizeof(port), udp))
		return 0;
	version >>= 4;
	/* Where the source address is: RFC 791, RFC 8200. */
	if (version == 4 && !bpf_probe_read_kernel(&address[3], 4, ip + 12))
		return peer_number(address, port);
	if (version == 6 && !bpf_probe_read_kernel(address, 16, ip + 8))
		return peer_number(address, port);
	return 0;
}

/* To whom the current call sends, 0: not known. */
static __noinline u64 receiver_here(void)
{
	struct end to;

	return named_end(&to) ? peer_number(to.address, to.port) : 0;
}

/*
 * Packets have arrived. Two CPUs may say so at once, and since 6.18 one for
 * several packets: one CPU at a time notes those behind the one noted last. What
 * comes meanwhile is noted with the next, and has no peer if it is read before.
 */
#define PACKETS_AT_ONCE	8
static __noinline int packets_arrive(struct sock *sk, u64 now)
{
	struct packets *p = bpf_sk_storage_get(&packets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 skbs[PACKETS_AT_ONCE] = {}, noted = 0, put;
	u32 i, queued, count = 0;
	struct sk_buff *skb;
	struct packet *to;

	if (!p || __sync_val_compare_and_swap(&p->busy, 0, 1))
		return 0;
	put = p->put;
	if (put > p->taken)
		noted = p->at[(put - 1) & (PACKETS - 1)].skb;
	queued = sk->sk_receive_queue.qlen;
	skb = (void *)BPF_CORE_READ(sk, sk_receive_queue.prev);
	for (i = 0; i < PACKETS_AT_ONCE && i < queued && (u64)skb != noted; i++) {
		skbs[i] = (u64)skb;
		count = i + 1;
		skb = BPF_CORE_READ(skb, prev);
	}
	/* More than fit: from the next read on it is counted anew how many have no note. */
	if (count == PACKETS_AT_ONCE && count < queued && (u64)skb != noted)
		put = p->taken = p->is_met = 0;
	for (i = 0; i < PACKETS_AT_ONCE && i < count; i++) {
		to = &p->at[(put + i) & (PACKETS - 1)];
		to->skb = skbs[(count - 1 - i) & (PACKETS_AT_ONCE - 1)];
		to->peer = sender_of(to->skb);
		to->arrived = now;
	}
	p->put = put + count;
	__sync_fetch_and_sub(&p->busy, 1);
	return 0;
}

/* The one that was read; zeros if it came before the socket was met, or was one of very many. */
static __always_inline struct packet next_packet(struct sock *sk)
{
	struct packets *p = bpf_sk_storage_get(&packets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct packet none = {}, one;
	u64 put, there;

	if (!p)
		return none;
	put = p->put;
	if (!p->is_met) {
		p->is_met = 1;
		there = 1 + sk->sk_receive_queue.qlen +
			BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
		p->unnoted = there > put ? there - put : 0;
	}
	if (p->unnoted) {
		p->unnoted--;
		return none;
	}
	if (p->taken >= put)
		return none;
	if (put - p->taken > PACKETS)
		p->taken = put - PACKETS;
	one = p->at[p->taken++ & (PACKETS - 1)];
	/* A read that was not seen: what is noted of packets ends where they do. */
	if (!sk->sk_receive_queue.qlen &&
	    !BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		p->taken = put;
	return one;
}

static __always_inline u64 link_of_peer(const struct connection *socket, u64 peer)
{
	return mixed(socket->link ^ peer);
}

/* The requests of a peer at the socket; NULL if there is no memory. */
static __noinline struct connection *meet_peer(struct connection *c, u64 peer)
{
	struct connection *known, fresh = {};
	u64 link;

	if (!c)
		return NULL;
	link = link_of_peer(c, peer);
	known = bpf_map_lookup_elem(&peers, &link);
	if (known)
		return known;
	fresh.link = link;
	fresh.service = c->service;
	fresh.role = ROLE_SERVER;
	fresh.datagrams = PEERS_KNOWN;
	bpf_map_update_elem(&peers, &link, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&peers, &link);
}

/*
 * The requests that the current call answers one of: those of the peer; of the
 * socket, if it was not known who had asked; of another peer, if a packet was
 * read before it was noted and taken for the next one: then the thread which
 * has read it answers.
 */
static __noinline struct connection *answered_here(struct connection *c, u64 serving)
{
	struct connection *known, *mine;
	u64 peer, link;

	if (!c || c->datagrams != PEERS_KNOWN)
		return c;
	peer = receiver_here();
	if (!peer) {
		c->datagrams = PEERS_UNKNOWN;
		return c;
	}
	link = link_of_peer(c, peer);
	known = bpf_map_lookup_elem(&peers, &link);
	if (known && known->begun)
		return known;
	if (c->begun && !c->served)
		return c;
	mine = bpf_map_lookup_elem(&peers, &serving);
	if (mine && mine->begun && mine->service == c->service)
		return mine;
	return known ?: c;
}

#endif
