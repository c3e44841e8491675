/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Services: the ports and paths that watched threads answer at, and those that
 * they call. A connection belongs to one of them, and who asks on it follows
 * from that: an accepted socket has the port, or the name, of the one that
 * listens.
 */
#ifndef WHYLAG_SERVICES_H
#define WHYLAG_SERVICES_H

#include "hists.h"
#include "named_end.h"

#define IPPROTO_TCP	6
#define IPPROTO_UDP	17
#define TCP_ESTABLISHED	1
#define TCP_FIN_WAIT1	4
#define TCP_CLOSE	7
#define TCP_LISTEN	10
#define SOCK_STREAM	1
#define SOCK_SEQPACKET	5

struct service_key {
	u64 name;		/* address of the kernel's name of an AF_UNIX socket */
	u8 address[16];
	u32 network;		/* namespace */
	u16 port;
	u8 role, kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SERVICES);
	__type(key, struct service_key);
	__type(value, u32);
} service_index SEC(".maps");

/* Total and queued. */
#define METRICS_OF_CALLS	2

/* By number; 0 is none, 1 and 2 are what found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES);
	__type(key, u32);
	__type(value, struct service);
} services SEC(".maps");

u32 service_next = ROLE_SERVER + 1;	/* the next free number */

/* Which requests of a service are sent whole: written by the loader, but for what was sent. */
struct choice {
	u64 threshold_ns;	/* those that take this long */
	u64 sent;		/* of them since the loader last looked, */
	u64 longest_ns;		/* and the longest */
	u32 sample_mask;	/* and one in mask + 1 of the others */
	u32 pad;
};
struct choice choices[SERVICES];
u64 slow_call_ns, slow_request_ns;	/* of new services, and */
u32 first_mask;		/* one request in mask + 1 */

/* Ports of which one is a service, in whichever network: a bit for each. */
u64 served_ports[1024];

static __always_inline bool is_served(u16 port)
{
	return served_ports[port >> 6 & 1023] >> (port & 63) & 1;
}

static __always_inline struct service *service_of(u32 number)
{
	return number ? bpf_map_lookup_elem(&services, &number) : NULL;
}

static __always_inline u16 family_of(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_family);
}

static __always_inline bool is_internet(u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

/* A connection on which bytes or packets follow each other. */
static __always_inline bool is_stream(struct sock *sk)
{
	u16 family = family_of(sk), type = BPF_CORE_READ(sk, sk_type);

	if (is_internet(family))
		return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP;
	return family == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET);
}

/* A socket of UDP: packets of any number of peers. */
static __always_inline bool is_datagrams(struct sock *sk)
{
	return is_internet(family_of(sk)) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_UDP;
}

static __always_inline u64 unix_name(struct sock *sk)
{
	return (u64)BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* The service that this socket answers for, if it does. */
static __always_inline void key_of_server(struct service_key *key, struct sock *sk)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->role = ROLE_SERVER;
	key->network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (family_of(sk) == AF_UNIX) {
		key->kind = SERVICE_UNIX;
		key->name = unix_name(sk);
	} else {
		key->kind = is_datagrams(sk) ? SERVICE_UDP : SERVICE_TCP;
		key->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	}
}

/* The peer that the current call names, if it is known: else all of them have one key. */
static __noinline int key_of_named(struct service_key *key, u16 family)
{
	struct end to;

	if (!key || !named_end(&to))
		return 0;
	key->port = bpf_ntohs(to.port);
	if (family == AF_INET6)
		__builtin_memcpy(key->address, to.address, sizeof(to.address));
	else
		*(u32 *)key->address = to.address[3];
	return 0;
}

/* The one that it calls. */
static __always_inline void key_of_client(struct service_key *key, struct sock *sk)
{
	u16 family = family_of(sk);

	__builtin_memset(key, 0, sizeof(*key));
	key->role = ROLE_CLIENT;
	key->network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (family == AF_UNIX) {
		key->kind = SERVICE_UNIX;
		key->name = unix_name(BPF_CORE_READ((struct unix_sock *)sk, peer));
		return;
	}
	key->kind = is_datagrams(sk) ? SERVICE_UDP : SERVICE_TCP;
	key->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (!key->port)
		key_of_named(key, family);
	else if (family == AF_INET6)
		BPF_CORE_READ_INTO(&key->address, sk, __sk_common.skc_v6_daddr);
	else
		*(u32 *)key->address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
}

static __always_inline u32 known_service(const struct service_key *key)
{
	u32 *number = bpf_map_lookup_elem(&service_index, key);

	return number ? *number : 0;
}

static __always_inline void name_service(struct service *service, u64 name)
{
	const char *at;

	if (!name || !bpf_core_field_exists(struct unix_address, name))
		return;
	at = (void *)(name + bpf_core_field_offset(struct unix_address, name) +
		      bpf_core_field_offset(struct sockaddr_un, sun_path));
	/* That of an abstract socket begins with a zero. */
	bpf_probe_read_kernel(service->path, 1, at);
	if (service->path[0])
		bpf_probe_read_kernel_str(service->path, SERVICE_PATH, at);
	else
		bpf_probe_read_kernel_str(service->path + 1, SERVICE_PATH - 1, at + 1);
	if (!service->path[0])
		service->path[0] = '@';
}

static __always_inline void describe_service(struct service *service, u32 number,
					     const struct service_key *key, u16 family,
					     u32 tgid)
{
	struct choice *choice = &choices[number & (SERVICES - 1)];
	u32 i, metrics = key->role == ROLE_CLIENT ? METRICS_OF_CALLS : SERVICE_METRICS;

	service->tgid = tgid;
	service->role = key->role;
	service->kind = key->kind;
	service->port = key->port;
	service->family = family;
	__builtin_memcpy(service->address, key->address, sizeof(service->address));
	if (key->kind == SERVICE_UNIX)
		name_service(service, key->name);
	for (i = 0; i < SERVICE_METRICS && i < metrics; i++)
		service->slots[i] = hist_slot(0, HIST_REQUEST_TOTAL + i, number);
	choice->threshold_ns = key->role == ROLE_CLIENT ? slow_call_ns : slow_request_ns;
	choice->sample_mask = first_mask;
	if (key->role == ROLE_SERVER && key->kind != SERVICE_UNIX)
		__sync_fetch_and_or(&served_ports[key->port >> 6 & 1023],
				    1ULL << (key->port & 63));
	service->number = number;
}

/* The number of a service, given to it now if it has none: where all are taken, that of the others. */
static __noinline u32 service_number(struct service_key *key, u16 family, u32 tgid)
{
	u32 number = known_service(key), given;
	struct service *service;

	if (number)
		return number;
	/* A program that calls many peers leaves histograms for all else. */
	number = SERVICES;
	if (service_next < SERVICES && !hists_are_scarce())
		number = __sync_fetch_and_add(&service_next, 1);
	if (number >= SERVICES ||
	    bpf_map_update_elem(&service_index, key, &number, BPF_NOEXIST)) {
		given = known_service(key);
		if (given)
			return given;
		lost(LOSS_SERVICE);
		key->kind = SERVICE_OTHERS;
		number = key->role;
	}
	service = service_of(number);
	if (service && !service->number)
		describe_service(service, number, key, family, tgid);
	return number;
}

/* Packets of any peer are answered there, by its port. */
static __always_inline bool serves_datagrams(struct sock *sk)
{
	u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);

	return is_datagrams(sk) && !BPF_CORE_READ(sk, __sk_common.skc_dport) && port &&
	       port < EPHEMERAL_PORT;
}

static __always_inline bool listens(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN && is_stream(sk);
}

/* A socket of the target is met: one that listens is a service. */
static __always_inline void find_listener(struct sock *sk, u32 tgid)
{
	struct service_key key;

	if (!listens(sk) && !serves_datagrams(sk))
		return;
	key_of_server(&key, sk);
	service_number(&key, family_of(sk), tgid);
}

/* The descriptor `fd` has been accepted: it tells of its service, if no walk has found that yet. */
__noinline int find_service(u32 tgid, u32 fd)
{
	struct file *file = file_here(fd);
	struct sock *sk = sock_of(file);
	struct service_key key;

	if (!roles_known || !is_stream(sk))
		return 0;
	key_of_server(&key, sk);
	if (key.port || key.name)
		service_number(&key, family_of(sk), tgid);
	return 0;
}

#endif
