/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The connections and sockets on which watched threads are asked, or ask: who
 * does, of which service they are, and what is remembered of each.
 */
#ifndef WHYLAG_CONNECTIONS_H
#define WHYLAG_CONNECTIONS_H

#include "services.h"

/* Of connection.datagrams. */
#define PEERS_KNOWN	1
#define PEERS_UNKNOWN	2	/* it answers by a call that is not understood: one request after the other */

struct connection {
	/* what the CPU that delivers data uses: with the storage's own fields in one cache line */
	u64 arrived;		/* first data that no read has taken, 0: none */
	u64 latest;		/* last data */
	u64 link;		/* as in request_record */
	u32 service;
	u8 role;
	u8 datagrams;		/* it serves packets of UDP: see datagrams.h */
	u8 wanted;		/* why it is to be sent: WANTED_SLOW, WANTED_SAMPLE */
	u8 used;		/* it has had a request */

	u64 begun;		/* of the request or call, 0: there was none yet */
	u64 first, read;	/* first and last read of it */
	u64 served, last;	/* first and last send of its answer, 0: not yet */
	u64 handed;		/* as in request_record */
	u64 slept, timed;	/* in poll by its reader, when it was read; timed_ns of that */
	u64 cause;		/* as in request_record */
	u32 reader, sender, tgid;
	u32 sends;
	u64 walk;		/* the last over files that came to it */
	u64 named;		/* peer that a socket without one sends to, 0: none was named yet */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* As many are followed at once, about 200 bytes each; the walk counts them anew. */
#define CONNECTIONS_MAX	262144
u32 connections_open, connections_walked;

/* Most sockets of a host are not followed: they have no storage at all. */
static __always_inline struct connection *connection_of(struct sock *sk)
{
	if (bpf_core_field_exists(sk->sk_bpf_storage) && !sk->sk_bpf_storage)
		return NULL;
	return bpf_sk_storage_get(&connections, sk, 0, 0);
}

/* Mixed with a number that the loader drew: addresses of the kernel are nobody's business. */
u64 link_seed;

static __always_inline u64 mixed(u64 x)
{
	x ^= link_seed;
	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
	return x ^ x >> 32;
}

/* An IPv4 address is the same number where the other end takes it for one of IPv6. */
static __always_inline u64 address_number(const u32 words[4])
{
	if (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff))
		return words[3];
	return mixed((u64)words[0] << 32 | words[1]) ^ ((u64)words[2] << 32 | words[3]);
}

static __always_inline u64 end_number(u32 words[4], u16 port)
{
	return mixed(address_number(words) ^ (u64)port << 40);
}

/* The same at both ends of a connection. */
static __noinline u64 link_of(struct sock *sk)
{
	u32 local[4] = { 0, 0, bpf_htonl(0xffff) }, remote[4] = { 0, 0, bpf_htonl(0xffff) };

	struct unix_sock *peer;

	if (family_of(sk) == AF_UNIX) {
		/* The verifier lets no program compute with `sk` itself. */
		peer = (void *)BPF_CORE_READ((struct unix_sock *)sk, peer);
		return mixed((u64)peer) + mixed((u64)BPF_CORE_READ(peer, peer));
	}
	if (family_of(sk) == AF_INET6) {
		BPF_CORE_READ_INTO(&local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&remote, sk, __sk_common.skc_v6_daddr);
	} else {
		local[3] = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		remote[3] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	}
	return end_number(local, BPF_CORE_READ(sk, __sk_common.skc_num)) +
	       end_number(remote, bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)));
}

/* Both ends are on this host. */
static __always_inline bool is_local(struct sock *sk)
{
	u32 local[4] = {}, remote[4] = {};
	u16 family = family_of(sk);

	if (family == AF_UNIX)
		return true;
	if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&remote, sk, __sk_common.skc_v6_daddr);
		return local[0] == remote[0] && local[1] == remote[1] &&
		       local[2] == remote[2] && local[3] == remote[3];
	}
	remote[3] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	return remote[3] == BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) ||
	       (bpf_ntohl(remote[3]) >> 24) == 127;
}

/*
 * The answer to a call arrives: from a thread of this host, watched or not, within its own send,
 * which delivers to a local socket at once.
 */
static __noinline int note_peer(struct sock *sk, struct connection *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = tgid_of(task), kind, call;
	struct service *service;

	if (!c)
		return 0;
	service = service_of(c->service);
	/* What came while its own call was at the socket arrives within that call. */
	if (!service || service->peer_tgid == tgid || c->tgid == tgid)
		return 0;
	call = current_call();
	if (call == NO_CALL)
		return 0;
	kind = call_kinds[call & (CALLS_MAX - 1)];
	if ((kind != CALL_SEND && kind != CALL_WRITE) || !is_local(sk))
		return 0;
	service->peer_tgid = tgid;
	name_task(service->peer_comm, task->group_leader, tgid);
	return 0;
}

static __always_inline struct connection *new_connection(struct sock *sk, u32 number, u8 role)
{
	struct service *service = service_of(number);
	struct connection *c;

	if (!service)
		return NULL;
	if (connections_open >= CONNECTIONS_MAX) {
		lost(LOSS_CONNECTION);
		return NULL;
	}
	c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* NULL as well if another CPU makes it at the same time: then it is there. */
	if (!c)
		c = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!c) {
		lost(LOSS_CONNECTION);
		return NULL;
	}
	if (c->service)
		return c;
	c->service = number;
	c->role = role;
	c->datagrams = role == ROLE_SERVER && is_datagrams(sk) ? PEERS_KNOWN : 0;
	c->link = link_of(sk);
	__sync_fetch_and_add(&connections_open, 1);
	__sync_fetch_and_add(&service->connections, 1);
	return c;
}

/*
 * Who asks on a connection of ours of which no listening socket is known. One
 * may have been closed, or belong to whoever handed the connection over: then
 * the ports tell, as a rule, and the name that only the server has.
 */
static __always_inline u8 likely_role(struct sock *sk)
{
	u16 local, remote;

	if (family_of(sk) == AF_UNIX) {
		if (unix_name(sk))
			return ROLE_SERVER;
		return unix_name(BPF_CORE_READ((struct unix_sock *)sk, peer)) ? ROLE_CLIENT :
										ROLE_UNKNOWN;
	}
	local = BPF_CORE_READ(sk, __sk_common.skc_num);
	remote = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	return local < EPHEMERAL_PORT && remote >= EPHEMERAL_PORT ? ROLE_SERVER : ROLE_CLIENT;
}

/* The same of packets: who has one peer asks it, and else who sends first. */
static __always_inline u8 role_of_packets(struct sock *sk, bool sends)
{
	if (BPF_CORE_READ(sk, __sk_common.skc_dport))
		return ROLE_CLIENT;
	if (BPF_CORE_READ(sk, __sk_common.skc_num) < EPHEMERAL_PORT)
		return ROLE_SERVER;
	return sends ? ROLE_CLIENT : ROLE_SERVER;
}

/* A watched thread reads from or sends on a socket that is met for the first time. */
static __noinline struct connection *meet_connection(struct sock *sk, u32 tgid, bool sends)
{
	bool datagrams = is_datagrams(sk);
	struct service_key key;
	u32 number;
	u8 role;

	if (!datagrams && !is_stream(sk))
		return NULL;
	key_of_server(&key, sk);
	number = datagrams ? 0 : known_service(&key);
	role = datagrams ? role_of_packets(sk, sends) : number ? ROLE_SERVER : likely_role(sk);
	if (role == ROLE_UNKNOWN)
		return NULL;
	if (role == ROLE_CLIENT)
		key_of_client(&key, sk);
	if (!number)
		number = service_number(&key, family_of(sk), tgid);
	return new_connection(sk, number, role);
}

/*
 * Data arrived at a socket that is not ours yet: it may wait to be accepted by
 * us, or be the first packet at one that serves them. Most are nobody's that is
 * watched, so that is found out at little cost: the kernel's own pointer is read
 * without a helper.
 */
static __always_inline struct connection *unaccepted(struct sock *sk)
{
	struct service_key key;
	u32 number;

	if (is_internet(sk->__sk_common.skc_family)) {
		if (!is_served(sk->__sk_common.skc_num))
			return NULL;
	} else if (sk->__sk_common.skc_family != AF_UNIX || !unix_name(sk)) {
		return NULL;
	}
	if (sk->__sk_common.skc_state == TCP_LISTEN || (!is_stream(sk) && !serves_datagrams(sk)))
		return NULL;
	key_of_server(&key, sk);
	number = known_service(&key);
	return number ? new_connection(sk, number, ROLE_SERVER) : NULL;
}

#endif
