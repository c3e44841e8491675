/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The address that the current call sends to, where its socket has no peer: it is read from the memory of
 * the process, so it may be anything.
 */
#ifndef WHYLAG_NAMED_END_H
#define WHYLAG_NAMED_END_H

#include "sleeps.h"

const volatile u16 sendto_call, sendmsg_call;	/* their numbers */

/* One of IPv4 is mapped into IPv6 (RFC 4291, 2.5.5.2). */
struct end {
	u32 address[4];
	u16 port;		/* in the order of the network */
};

static __noinline int end_at(u64 at, struct end *to)
{
	struct {
		u16 family, port;
		u32 address;
	} begin;

	if (!to || !at || bpf_probe_read_user(&begin, sizeof(begin), (void *)at))
		return 0;
	__builtin_memset(to, 0, sizeof(*to));
	to->port = begin.port;
	if (begin.family == AF_INET6)
		return !bpf_probe_read_user(to->address, sizeof(to->address), (void *)(at + 8));
	to->address[2] = bpf_htonl(0xffff);
	to->address[3] = begin.address;
	return begin.family == AF_INET;
}

/* False if the call has none, or is not understood. */
static __noinline int named_end(struct end *to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u16 call = saved_call(task);
	u64 name = 0;

	if (call == sendto_call)
		return end_at(ARGUMENT_5(regs), to);
	/* msghdr begins with the address of the name. */
	if (call == sendmsg_call &&
	    !bpf_probe_read_user(&name, sizeof(name), (void *)ARGUMENT_2(regs)))
		return end_at(name, to);
	return 0;
}

#endif
