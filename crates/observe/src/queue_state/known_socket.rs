//! What the looks at one socket have shown, since the last batch and before.

use std::collections::HashMap;

use model::{
    BlockedSends, Connecting, Depth, Drops, QueueSecond, Resent, SentLast, Socket, SocketKind,
    Timeout, TimeoutKind,
};

use crate::bpf::queue_record;
use crate::sockets::{kind, socket};
use crate::wire::Role;

/// Ports from here on are given to whoever connects.
const EPHEMERAL_PORT: u16 = 32_768;
/// include/net/tcp_states.h
const SYN_SENT: u8 = 2;

/// A socket, since the last batch and before.
pub struct KnownSocket {
    /// As the last look showed it.
    pub socket: Socket,
    ports: (u16, u16),
    reported: bool,
    /// In a look since the last batch.
    pub seen: bool,
    looks: u64,
    receive: Sum,
    send: Sum,
    nagle_looks: u64,
    connecting: Option<Connecting>,
    drops: u64,
    drops_before: u64,
    resent: Resent,
    resent_before: u64,
    timeouts_before: u64,
    /// Last seen nearly empty.
    empty_ns: u64,
    /// Drops that may go on.
    pub burst: Option<Drops>,
    /// As the last look shows it, whoever has opened the connection.
    sent_last: Option<SentLast>,
    role: Role,
}

impl KnownSocket {
    /// As the first look at it shows it.
    pub fn new(record: &queue_record) -> KnownSocket {
        KnownSocket {
            socket: socket(record),
            ports: (record.local_port, record.remote_port),
            reported: false,
            seen: false,
            looks: 0,
            receive: Sum::default(),
            send: Sum::default(),
            nagle_looks: 0,
            connecting: None,
            drops: 0,
            drops_before: 0,
            resent: Resent::default(),
            resent_before: 0,
            timeouts_before: 0,
            empty_ns: record.time_ns,
            burst: None,
            sent_last: None,
            role: Role::Unknown,
        }
    }

    /// Takes a look in. Gives the burst of drops that has ended by it.
    pub fn note(&mut self, record: &queue_record, reasons: &HashMap<u32, String>) -> Option<Drops> {
        if !self.is_still(record) {
            return None;
        }
        let (now, queued, limit) = (record.time_ns, record.receive, record.receive_limit);
        self.seen = true;
        self.looks += 1;
        self.note_resent(record);
        self.role = Role::of(record.role).unwrap_or(Role::Unknown);
        let heard_ns = (record.heard_at != 0).then_some(record.heard_at);
        // What a socket of AF_UNIX holds is at the peer, which has not read it.
        let arrived = record.send == 0 || self.socket.kind == SocketKind::Unix;
        self.sent_last = (record.sent_at != 0 && arrived)
            .then_some(SentLast { sent_ns: record.sent_at, heard_ns });
        self.receive.add(now, queued, limit);
        self.send.add(now, record.send, record.send_limit);
        self.nagle_looks += u64::from(record.nagle);
        self.note_connecting(record);
        let new = record.drops.saturating_sub(self.drops_before);
        self.drops_before = self.drops_before.max(record.drops);
        self.drops += new;
        if new > 0 {
            let timed = record.drop_first != 0;
            let first_ns = if timed { record.drop_first } else { now };
            let burst = self.burst.get_or_insert_with(|| Drops {
                socket: socket(record),
                reason: String::new(),
                filling_ns: self.empty_ns.min(first_ns),
                first_ns,
                last_ns: first_ns,
                count: 0,
                queued: 0,
                limit,
            });
            burst.count += new;
            burst.last_ns = if timed { record.drop_last } else { now };
            burst.queued = burst.queued.max(queued);
            if timed && let Some(reason) = reasons.get(&record.drop_reason) {
                burst.reason.clone_from(reason);
            }
        }
        let ended = if new > 0 { None } else { self.burst.take() };
        if queued <= limit / 8 {
            self.empty_ns = now;
        }
        ended
    }

    /// What the looks since the last batch have shown.
    pub fn second(&mut self, start_ns: u64, blocked_sends: BlockedSends) -> QueueSecond {
        self.reported = true;
        QueueSecond {
            start_ns,
            socket: self.socket.clone(),
            looks: self.looks,
            receive: self.receive.depth(self.looks),
            send: self.send.depth(self.looks),
            nagle_looks: self.nagle_looks,
            connecting: self.connecting.filter(|seen| seen.last_ns >= start_ns),
            drops: self.drops,
            resent: std::mem::take(&mut self.resent),
            blocked_sends,
            sent_last: None,
        }
    }

    /// What was sent on a connection that this side has opened, and has had no answer so far; all of
    /// it has arrived. Where the recording has not seen who opened it the ports tell: `is_served` says of
    /// a port whether the target listens there.
    pub fn sent_last(&self, is_served: impl Fn(u16) -> bool) -> Option<SentLast> {
        let (local, remote) = self.ports;
        let opened = match self.role {
            Role::Client => true,
            Role::Unknown => local >= EPHEMERAL_PORT && remote != 0 && !is_served(local),
            Role::Server => false,
        };
        let is_stream = matches!(self.socket.kind, SocketKind::Tcp | SocketKind::Unix);
        self.sent_last.filter(|_| opened && is_stream)
    }

    /// Counts anew, for the next batch.
    pub fn begin_second(&mut self) {
        (self.receive, self.send) = (Sum::default(), Sum::default());
        (self.looks, self.nagle_looks, self.drops) = (0, 0, 0);
    }

    /// Notes that it was bound, connected, or listens. False if it has been closed: then its
    /// queues mean something else.
    fn is_still(&mut self, record: &queue_record) -> bool {
        let ports = (record.local_port, record.remote_port);
        let now = kind(record);
        if self.socket.kind == SocketKind::TcpListening && now == SocketKind::Tcp {
            return false;
        }
        if self.socket.kind != now || (ports != self.ports && ports.0 != 0) {
            self.socket = socket(record);
            self.ports = ports;
        }
        true
    }

    fn note_connecting(&mut self, record: &queue_record) {
        if self.socket.kind == SocketKind::Tcp && record.state == SYN_SENT {
            let last_ns = record.time_ns;
            let first = Connecting { since_ns: last_ns, last_ns };
            self.connecting.get_or_insert(first).last_ns = last_ns;
        }
    }

    fn note_resent(&mut self, record: &queue_record) {
        let segments = u64::from(record.resent);
        self.resent.segments += segments.saturating_sub(self.resent_before);
        self.resent_before = segments;
        if record.timeouts > self.timeouts_before {
            self.timeouts_before = record.timeouts;
            let kind = match (record.timeout_after, record.connecting) {
                (0, _) => TimeoutKind::Probe,
                (_, 0) => TimeoutKind::Retransmission,
                _ => TimeoutKind::Connecting,
            };
            let (at_ns, after_ns) = (record.timeout_at, record.timeout_after);
            self.resent.timeouts.push(Timeout { at_ns, kind, after_ns });
        }
    }

    /// Whether anything happened in it since the last batch.
    pub fn has_something(&self) -> bool {
        let something = self.receive.max > 0 || self.send.max > 0 || self.drops > 0;
        self.looks > 0 && (something || self.resent.segments > 0)
    }

    /// Whether no batch has reported it yet.
    pub fn is_new(&self) -> bool {
        self.looks > 0 && !self.reported
    }
}

#[derive(Default)]
struct Sum {
    sum: u64,
    max: u64,
    max_ns: u64,
    limit: u64,
}

impl Sum {
    fn add(&mut self, now: u64, value: u64, limit: u64) {
        self.sum = self.sum.saturating_add(value);
        self.limit = limit;
        if value > self.max {
            (self.max, self.max_ns) = (value, now);
        }
    }

    fn depth(&self, looks: u64) -> Depth {
        let mean = self.sum.checked_div(looks).unwrap_or(0);
        Depth { mean, max: self.max, max_ns: self.max_ns, limit: self.limit }
    }
}
