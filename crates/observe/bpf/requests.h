/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Requests of programs that say nothing of them. One begins when data arrives
 * at a connection whose last request is answered, is worked on from its first
 * read, and served when the first byte of an answer goes out. A call, on a
 * connection that we opened, begins with a send and ends when data arrives.
 *
 * Each connection remembers the one that goes on. Arrivals are noted wherever
 * they come from; all else happens in the threads that read and send.
 */
#ifndef WHYLAG_REQUESTS_H
#define WHYLAG_REQUESTS_H

#include "datagrams.h"
#include "rings.h"

/* Why the recorder is to see a request whole. */
#define WANTED_SLOW	1
#define WANTED_SAMPLE	2

u64 requests_sent;	/* number of the next that is sent */

/* Slow ones that are sent between two looks of the loader, besides ever slower ones. */
#define SLOW_SENT	1000

/* Worked on by nobody: its thread was asleep in poll for all but a 16th of the time, and so long. */
#define HELD_NS		20000000

/* A long poll that times out was given seconds, 20 to 60 as a rule. */
#define TIMED_OUT_NS	5000000000ULL

static __always_inline void count(struct service *service, u32 kind, u64 ns)
{
	u32 metric = kind - HIST_REQUEST_TOTAL;

	if (metric < SERVICE_METRICS)
		hist_count(service->slots[metric], ns);
}

/* Whether the recorder is to see this one whole: because it was slow, or by chance. */
static __always_inline u8 is_wanted(struct service *service, u64 ns)
{
	struct choice *choice = &choices[service->number & (SERVICES - 1)];
	u8 wanted = bpf_get_prandom_u32() & choice->sample_mask ? 0 : WANTED_SAMPLE;

	if (ns < choice->threshold_ns)
		return wanted;
	if (ns > choice->longest_ns)
		choice->longest_ns = ns;
	else if (choice->sent >= SLOW_SENT) {
		__sync_fetch_and_add(&service->unsent, 1);
		return wanted;
	}
	__sync_fetch_and_add(&choice->sent, 1);
	return wanted | WANTED_SLOW;
}

static __always_inline void fill_request(struct request_record *r, struct connection *c,
					 u64 begun)
{
	r->type = RECORD_REQUEST;
	r->service = c->service;
	r->id = __sync_fetch_and_add(&requests_sent, 1);
	r->begun = begun;
	r->first = c->first;
	r->read = c->read;
	r->served = c->served;
	r->last = c->last;
	r->handed = c->handed;
	r->reader = c->reader;
	r->sender = c->sender;
	r->tgid = c->tgid;
	r->sends = c->sends;
	r->link = c->link;
	r->cause = c->cause;
	r->sampled = !!(c->wanted & WANTED_SAMPLE);
	r->is_call = c->role == ROLE_CLIENT;
	r->is_first = !c->used;
	__builtin_memset(r->pad, 0, sizeof(r->pad));
}

static __always_inline void send_request(struct connection *c, u64 begun)
{
	struct request_record *r = reserve(&outliers, sizeof(*r));

	if (!r) {
		lost(LOSS_EVENT_RING);
		return;
	}
	fill_request(r, c, begun);
	bpf_ringbuf_submit(r, ring_flags(&outliers));
}

/* Nothing more is sent in answer to the last request of the connection. */
__noinline int answer_ends(struct connection *c)
{
	struct service *service;
	u64 begun;

	if (!c || !c->served)
		return 0;
	service = service_of(c->service);
	begun = c->begun;
	/* A walk over all connections may come to it while it is closed. */
	if (!service || !begun || __sync_val_compare_and_swap(&c->begun, begun, 0) != begun)
		return 0;
	if (c->sends > 1)
		count(service, HIST_REQUEST_ANSWERING, c->last - c->served);
	if (c->wanted)
		send_request(c, begun);
	c->wanted = 0;
	c->used = 1;
	return 0;
}

/*
 * When the current send began: its trace point comes at its end, over loopback
 * behind the arrival at the other side, and perhaps behind its answer.
 */
static __always_inline u64 send_began(struct thread *t)
{
	u32 kind = call_kinds[t->call & (CALLS_MAX - 1)];

	if (t->call != NO_CALL && t->call_start && !calls_off &&
	    (kind == CALL_SEND || kind == CALL_WRITE))
		return t->call_start;
	return bpf_ktime_get_ns();
}

/*
 * The end of a time that the server had set let it answer: a lock whose holder sleeps in a runtime that
 * has many requests on a thread, a pause before another try. Requests that come meanwhile, and are read,
 * end most of the sleeps; but where the timer is a look at something else, little of the time is its.
 */
static __always_inline bool waited_for_own_time(struct connection *c, struct thread *t, u64 slept)
{
	return t->poll_timed && t->timed_ns - c->timed >= slept / 16 &&
	       c->served - c->first < TIMED_OUT_NS;
}

/*
 * A long poll or a subscription: the thread read it, waited for events that no
 * thread of its own process brought, nor a peer that it had called, and then
 * answered. Or a thread of its process told it something because of another
 * request: see news.h. An event loop, which has read others since, may have
 * slept again before it was told.
 */
static __always_inline bool nobody_worked(struct connection *c, struct thread *t)
{
	u64 worked = c->served - c->first, slept = t->accounts[ACCT_POLL] - c->slept;
	u64 least = worked - worked / 16;

	if (worked < HELD_NS || c->reader != t->tid || t->replied >= c->first)
		return false;
	if (t->told_ns >= least)
		return true;
	return slept >= least && !waited_for_own_time(c, t, slept) &&
	       (t->woken_by_tgid != t->tgid ||
				  (t->serving != c->link && t->news > c->first));
}

/* More has come than was read: if not of the same request, then by the latest arrival. */
static __always_inline bool is_data_left(struct sock *sk)
{
	struct tcp_sock *tcp;

	if (sk->__sk_common.skc_family == AF_UNIX)
		return sk->sk_receive_queue.qlen;
	tcp = bpf_skc_to_tcp_sock(sk);
	return tcp && tcp->rcv_nxt != tcp->copied_seq;
}

static __always_inline void came_before_answer(struct connection *c)
{
	struct service *service = service_of(c->service);

	if (service)
		__sync_fetch_and_add(&service->several, 1);
}

static __always_inline void begin_request(struct connection *c, struct thread *t, u64 arrived,
					  u64 now)
{
	answer_ends(c);
	/* The clocks of two CPUs may differ. */
	c->begun = arrived && arrived < now ? arrived : now;
	c->first = now;
	c->served = c->last = c->handed = 0;
	c->sends = 0;
	c->reader = t->tid;
	c->tgid = t->tgid;
	c->slept = t->accounts[ACCT_POLL];
	c->timed = t->timed_ns;
	t->asked_at = c->begun;
	t->asked_read = now;
	t->fellow_ns = t->told_ns = 0;
}

static __always_inline void request_read(struct sock *sk, struct connection *c,
					 struct thread *t)
{
	u64 now = bpf_ktime_get_ns(), arrived = c->arrived;

	t->serving = c->link;
	c->read = now;
	c->arrived = is_data_left(sk) ? c->latest : 0;
	/* Otherwise it is more of the same. */
	if (!c->begun || c->served)
		begin_request(c, t, arrived, now);
}

static __always_inline void packet_read(struct sock *sk, struct connection *c,
					struct thread *t)
{
	struct packet packet = next_packet(sk);
	struct connection *of_peer = NULL;
	u64 now = bpf_ktime_get_ns();

	if (packet.peer && c->datagrams == PEERS_KNOWN)
		of_peer = meet_peer(c, packet.peer);
	if (of_peer)
		c = of_peer;
	t->serving = c->link;
	c->read = now;
	if (c->begun && !c->served)
		came_before_answer(c);
	begin_request(c, t, packet.arrived, now);
}

static __always_inline void request_served(struct connection *c, struct service *service,
					   struct thread *t)
{
	u64 total = c->served - c->begun;

	c->sender = t->tid;
	if (c->sender != c->reader && t->woken_by == c->reader && t->woken_at > c->first)
		c->handed = t->woken_at;
	if (c->arrived && c->arrived < c->served)
		came_before_answer(c);
	if (nobody_worked(c, t)) {
		__sync_fetch_and_add(&service->held, 1);
		count(service, HIST_REQUEST_HELD, total);
		return;
	}
	count(service, HIST_REQUEST_TOTAL, total);
	count(service, HIST_REQUEST_QUEUED, c->first - c->begun);
	count(service, HIST_REQUEST_WORKED, c->served - c->first);
	c->wanted = is_wanted(service, total);
}

static __always_inline void answer_sent(struct connection *c, struct thread *t)
{
	struct service *service = service_of(c->service);
	u64 at;

	if (!service)
		return;
	if (!c->begun) {
		/* An answer of several packets has ended with the first. */
		if (!c->datagrams || !c->served)
			__sync_fetch_and_add(&service->pushed, 1);
		return;
	}
	at = send_began(t);
	if (at < c->first)
		at = c->first;
	/* Of two threads that send at once, the one that began first may be seen last. */
	if (at > c->last)
		c->last = at;
	c->sends++;
	if (c->served)
		return;
	c->served = at;
	request_served(c, service, t);
	if (c->link == t->serving)
		t->asked_at = 0;
}

static __always_inline void packet_sent(struct connection *socket, struct thread *t)
{
	struct connection *c = answered_here(socket, t->serving);

	if (!c)
		return;
	answer_sent(c, t);
	if (c != socket)
		answer_ends(c);
}

/* Recording stops, and the request is not answered. */
static __always_inline void still_open(struct connection *c)
{
	struct service *service = service_of(c->service);

	if (!service)
		return;
	service->open++;
	if (!service->oldest || c->begun < service->oldest)
		service->oldest = c->begun;
}

static __always_inline void call_sent(struct connection *c, struct thread *t)
{
	u64 now = send_began(t);

	c->last = now;
	if (c->begun)
		return;		/* more of it */
	c->begun = now;
	c->cause = t->serving;
	c->sender = t->tid;
	c->tgid = t->tgid;
	t->calls_open++;
}

/* Whose answers come at a socket that sends to several peers is not known. */
static __noinline int packet_named(struct sock *sk, struct connection *c)
{
	struct service_key key = { .role = ROLE_CLIENT, .kind = SERVICE_UDP };
	u64 named = receiver_here();

	if (!c || !named || c->named == named)
		return 0;
	if (c->named) {
		key.network = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
		c->service = service_number(&key, family_of(sk), c->tgid);
	}
	c->named = named;
	return 0;
}

/* Whether a peer answers packets at all is told by how many it was sent. */
static __always_inline void packet_asks(struct sock *sk, struct connection *c)
{
	struct service *service;

	if (!sk->__sk_common.skc_dport)
		packet_named(sk, c);
	service = service_of(c->service);
	if (service && !__sync_fetch_and_add(&service->packets, 1))
		service->packets_since = bpf_ktime_get_ns();
}

static __always_inline void reply_read(struct connection *c, struct thread *t)
{
	struct service *service = service_of(c->service);
	u64 now, arrived = c->arrived;

	c->arrived = 0;
	if (!service || !c->begun)
		return;		/* more of it, or what nobody asked for */
	now = bpf_ktime_get_ns();
	t->replied = now;
	if (t->serving != c->cause)
		t->asked_at = 0;
	t->serving = c->cause;	/* it goes on with that */
	if (t->calls_open)
		t->calls_open--;
	if (arrived < c->begun || arrived > now)
		arrived = now;
	count(service, HIST_REQUEST_TOTAL, arrived - c->begun);
	count(service, HIST_REQUEST_QUEUED, now - arrived);
	if (is_wanted(service, arrived - c->begun) & WANTED_SLOW) {
		c->first = arrived;
		c->read = now;
		c->reader = t->tid;
		send_request(c, c->begun);
	}
	c->begun = 0;
}

/*
 * The connection is closed without an answer to what was sent last: that took until now. What was sent long
 * before may be something that has no answer, and the last of it a farewell.
 */
static __noinline int call_given_up(struct connection *c)
{
	u64 now = bpf_ktime_get_ns(), ns;
	struct service *service;
	struct thread *t;

	/* What has arrived is an answer that nobody has read. */
	if (!c || !c->begun || c->arrived)
		return 0;
	service = service_of(c->service);
	ns = now - c->last;
	if (!service || (s64)ns < (s64)slow_call_ns)
		return 0;
	t = thread_of(bpf_get_current_task_btf());
	if (t && t->tid == c->sender && t->calls_open)
		t->calls_open--;
	__sync_fetch_and_add(&service->given_up, 1);
	count(service, HIST_REQUEST_TOTAL, ns);
	if (is_wanted(service, ns) & WANTED_SLOW) {
		c->first = c->read = now;
		c->reader = c->sender;
		send_request(c, c->last);
	}
	c->begun = 0;
	return 0;
}

#endif
