/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Sockets whose two ends are alike, so that neither has called the other: those of socketpair(), and
 * sockets of datagrams that are connected to each other. Which end sends first asks, which receives
 * first answers, and so it remains. Where the kernel tells of no transfers the first wait decides:
 * behind a send it is one for an answer.
 *
 * Of a pair that is older than the recording the first transfer may be an answer. There, who waits for
 * work in another place before each of its sends is the one that asks, after all.
 */
#ifndef WHYLAG_PAIRS_H
#define WHYLAG_PAIRS_H

#include "state.h"

#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10

#define SOCK_DGRAM	2

/* Ports from here on are the kernel's choice (net.ipv4.ip_local_port_range), those below a server's. */
#define EPHEMERAL_PORT	32768

/* What is known of one end of a pair. */
enum pair_end {
	NO_PAIR,	/* it is none */
	PAIR_WAITED,	/* it waits for data; nothing was sent or received */
	PAIR_ASKS,
	PAIR_ANSWERS,
	/* beside PAIR_ANSWERS, up to three times: it was told elsewhere to send what it waits for an answer to */
	PAIR_DOUBT = 0x100,
	PAIR_END = PAIR_DOUBT - 1,
};

#define DOUBTS	(3 * PAIR_DOUBT)

/* In place of an object, of waits at many descriptors. */
#define WORK_ANYWHERE	~0ULL

/* By inode. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u32);
} pair_ends SEC(".maps");

static __always_inline u64 inode_of_sock(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
}

static __always_inline u32 pair_end(u64 inode)
{
	u32 *end = bpf_map_lookup_elem(&pair_ends, &inode);

	return end ? *end : NO_PAIR;
}

static __always_inline void set_pair_end(u64 inode, u32 end)
{
	if (inode)
		bpf_map_update_elem(&pair_ends, &inode, &end, BPF_ANY);
}

static __always_inline struct sock *unix_peer(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, peer);
}

static __always_inline bool is_named(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* Ports tell who asks at most sockets of UDP that are connected. */
static __always_inline bool is_pair(struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family), local, remote;
	bool datagrams = BPF_CORE_READ(sk, sk_type) == SOCK_DGRAM;
	struct sock *peer;

	if (family == AF_UNIX) {
		peer = unix_peer(sk);
		if (!peer)
			return false;
		return datagrams ? BPF_CORE_READ((struct unix_sock *)peer, peer) == sk :
				   !is_named(sk) && !is_named(peer);
	}
	if (!datagrams || (family != AF_INET && family != AF_INET6))
		return false;
	local = BPF_CORE_READ(sk, __sk_common.skc_num);
	remote = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	return remote && (local < EPHEMERAL_PORT) == (remote < EPHEMERAL_PORT);
}

static __always_inline u64 peer_inode(struct sock *sk)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX)
		return 0;
	return inode_of_sock(unix_peer(sk));
}

/* The first that is known of an end: the other one may be known already, and both are never the same. */
static __always_inline u32 decide_pair(struct sock *sk, u64 inode, bool sends)
{
	u32 end = sends ? PAIR_ASKS : PAIR_ANSWERS, other = pair_end(peer_inode(sk)) & PAIR_END;

	if (other == PAIR_ASKS)
		end = PAIR_ANSWERS;
	else if (other == PAIR_ANSWERS)
		end = PAIR_ASKS;
	set_pair_end(inode, end);
	return end;
}

/* Data was sent or received at a socket: was it one of a pair, which is no service? */
static __noinline int pair_transfers(struct sock *sk, u32 sends)
{
	u64 inode;

	if (!is_pair(sk))
		return 0;
	inode = inode_of_sock(sk);
	if (pair_end(inode) <= PAIR_WAITED)
		decide_pair(sk, inode, sends);
	return BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX;
}

/* Another sign that this end asks although it is taken for the one that answers: does it count now? */
static __always_inline u32 doubt_pair(struct sock *sk, u64 inode, u32 end)
{
	if (end + PAIR_DOUBT < PAIR_ANSWERS + DOUBTS) {
		set_pair_end(inode, end + PAIR_DOUBT);
		return PAIR_ANSWERS;
	}
	set_pair_end(inode, PAIR_ASKS);
	set_pair_end(peer_inode(sk), PAIR_ANSWERS);
	return PAIR_ASKS;
}

/* A thread begins to wait for data at a socket, having `sent` something there; `work_at` as in thread. */
static __noinline u32 pair_waits(struct sock *sk, u64 inode, u32 sent, u64 work_at)
{
	u32 end;

	if (!is_pair(sk))
		return NO_PAIR;
	end = pair_end(inode);
	if (end == NO_PAIR && sent)
		return decide_pair(sk, inode, true);
	if (end == NO_PAIR)
		set_pair_end(inode, PAIR_WAITED);
	if (end <= PAIR_WAITED)
		return PAIR_ANSWERS;
	if ((end & PAIR_END) == PAIR_ASKS || !sent || target_kind == TARGET_COMMAND)
		return end & PAIR_END;
	if (work_at && work_at != inode)
		return doubt_pair(sk, inode, end);
	if (end != PAIR_ANSWERS)
		set_pair_end(inode, PAIR_ANSWERS);
	return PAIR_ANSWERS;
}

#endif
