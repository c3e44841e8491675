/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What a call of the current thread asks for: a number of it, and of a path or an
 * address its name.
 */
#ifndef WHYLAG_ASKED_H
#define WHYLAG_ASKED_H

#include "hash.h"
#include "services.h"

static __always_inline bool is_path_call(u32 kind)
{
	const u64 kinds = 1 << CALL_PATH_1 | 1 << CALL_PATH_2 | 1 << CALL_PATH_3 |
			  1 << CALL_PATH_4;

	return kinds >> (kind & 63) & 1;
}

/* It is known by its name, not by an inode. */
static __always_inline bool has_name(u32 kind)
{
	return is_path_call(kind) || kind == CALL_CONNECT || kind == CALL_SOCKET_OPTION;
}

static __always_inline bool read_path(char *path, u64 at)
{
	return bpf_probe_read_user_str(path, RETRY_PATH, (void *)at) > 1;
}

/* An address as connect is given it: a family, and for the internet a port. */
static __always_inline bool read_address(struct retry_name *name, u64 at)
{
	u16 begin[2];

	if (bpf_probe_read_user(begin, sizeof(begin), (void *)at))
		return false;
	name->family = begin[0];
	if (begin[0] == AF_UNIX) {
		if (begin[1] & 0xff)
			return read_path(name->path, at + 2);
		/* That of an abstract socket begins with a zero. */
		name->path[0] = '@';
		return bpf_probe_read_user_str(name->path + 1, RETRY_PATH - 1,
					       (void *)(at + 3)) > 1;
	}
	if (!is_internet(begin[0]))
		return false;
	name->port = bpf_ntohs(begin[1]);
	if (begin[0] == AF_INET)
		return !bpf_probe_read_user(name->address, 4, (void *)(at + 4));
	return !bpf_probe_read_user(name->address, 16, (void *)(at + 8));
}

/* The address that a socket is to be connected to: that stays when it was refused. */
static __always_inline bool peer_of_socket(struct retry_name *name, struct file *file)
{
	struct socket *socket = (void *)BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	name->family = family_of(sk);
	if (!is_internet(name->family) || !is_stream(sk))
		return false;
	name->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (name->family == AF_INET6)
		BPF_CORE_READ_INTO(&name->address, sk, __sk_common.skc_v6_daddr);
	else
		*(u32 *)name->address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	return name->port;
}

static __always_inline bool read_name(struct retry_name *name, u32 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	switch (kind) {
	case CALL_CONNECT:
		return read_address(name, ARGUMENT_2(regs));
	case CALL_SOCKET_OPTION:
		return peer_of_socket(name, file_here((u32)ARGUMENT_1(regs)));
	case CALL_PATH_1:
		return read_path(name->path, ARGUMENT_1(regs));
	case CALL_PATH_2:
		return read_path(name->path, ARGUMENT_2(regs));
	case CALL_PATH_3:
		return read_path(name->path, ARGUMENT_3(regs));
	case CALL_PATH_4:
		return read_path(name->path, ARGUMENT_4(regs));
	}
	return false;
}

/*
 * Reads into cpu->asked what a call names; a number of it, 0 if it cannot be read. The buffer may
 * be another one at the next try, so its bytes count.
 */
__noinline u64 named_by(u32 kind)
{
	u32 zero = 0, i;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	u64 *words, hash = 0x9e3779b97f4a7c15ULL;

	if (!cpu)
		return 0;
	words = (u64 *)&cpu->asked.name;
	for (i = 0; i < sizeof(cpu->asked.name) / sizeof(u64); i++)
		words[i] = 0;
	if (!read_name(&cpu->asked.name, kind))
		return 0;
	for (i = 0; i < sizeof(cpu->asked.name) / sizeof(u64); i++)
		hash = mix(hash, words[i]);
	return hash ?: 1;
}

/* What a call of the current thread asks for: a name, the inode behind its descriptor, or its first argument. */
static __always_inline u64 asked_for(u32 kind, u32 *mode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u64 name = named_by(kind);

	*mode = 0;
	if (has_name(kind))
		return name;
	switch (kind) {
	case CALL_FILE_LOCK:
	case CALL_FCNTL:
	case CALL_SEND:
	case CALL_WRITE:
		return inode_of(file_here((u32)ARGUMENT_1(regs)), mode);
	}
	return ARGUMENT_1(regs);
}

#endif
