/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The kernel types of sockets, their queues and namespaces. Included by kernel.h, as which they are
 * relocated.
 */
#ifndef WHYLAG_KERNEL_SOCKETS_H
#define WHYLAG_KERNEL_SOCKETS_H

struct in6_addr {
	u8 bytes[16];
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sk_buff;

struct sk_buff_head {
	struct sk_buff *prev;
	u32 qlen;
};

/* Per node since 6.18, for sockets with many writers. */
struct numa_drop_counters {
	atomic_t drops0;
	atomic_t drops1;
};

struct sock {
	struct sock_common __sk_common;
	void *sk_bpf_storage;
	atomic_t sk_drops;
	struct numa_drop_counters *sk_drop_counters;
	struct sk_buff_head sk_receive_queue;
	struct {
		atomic_t rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	int sk_sndbuf;
	refcount_t sk_wmem_alloc;
	u16 sk_protocol;
	u16 sk_type;
	u32 sk_ack_backlog;
	u32 sk_max_ack_backlog;
	struct socket *sk_socket;
};

struct inet_connection_sock {
	u32 icsk_rto;		/* jiffies */
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
	u8 icsk_pending;
	struct {
		u32 lrcvtime;	/* jiffies, last data */
	} icsk_ack;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 lsndtime;		/* jiffies, last data */
	u64 bytes_received;
	u64 bytes_sent;
	u32 copied_seq;
	u32 write_seq;
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_wnd;
	u32 snd_cwnd;
	u32 packets_out;
	u32 mss_cache;
	u8 nonagle : 4;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct sk_buff {
	struct sk_buff *prev;
	unsigned char *head;
	u16 transport_header, network_header;	/* in `head` */
};

#endif
