//! Turns looks at sockets into figures for each second, and into bursts of drops.

mod known_socket;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use model::{
    BlockedSends, Depth, Drops, QueueSecond, Resent, Socket, SocketAddress, SocketKind, Sockets,
};

use self::known_socket::KnownSocket;
use crate::bpf::queue_record;
use crate::sends::{SendKey, Sends};
use crate::sockets::drop_reasons;

/// Bursts of drops kept between two batches; what comes beyond is counted in the last one.
const BURSTS: usize = 4096;

/// Sockets of a batch, one a second, in which something happened, and as many that are new and quiet:
/// each takes some 400 bytes of the store, and anybody can open hundreds of thousands.
const SOCKETS: usize = 512;

/// What was seen of all sockets since the last batch.
#[derive(Default)]
pub struct State {
    /// By inode.
    known: HashMap<u64, KnownSocket>,
    /// Sends that found no room.
    pub sends: Sends,
    drops: Vec<Drops>,
    reasons: HashMap<u32, String>,
    /// Of sockets in which something happened, beyond those that a batch has room for.
    left_out: u64,
    /// The next batch is the last one.
    ends: bool,
}

impl State {
    /// State that knows the names of this kernel's reasons for drops.
    pub fn new() -> State {
        State { reasons: drop_reasons(), ..State::default() }
    }

    /// Takes a look in.
    pub fn note(&mut self, record: &queue_record) {
        let known = self.known.entry(record.inode).or_insert_with(|| KnownSocket::new(record));
        if let Some(burst) = known.note(record, &self.reasons) {
            keep(&mut self.drops, burst);
        }
    }

    /// Hands over what was seen; intervals began at `start_ns`.
    pub fn take(&mut self, start_ns: u64) -> Sockets {
        let (mut queues, mut new) = (Vec::new(), 0);
        let mut blocked = self.sends.take();
        let served = self.served_ports();
        for known in self.known.values_mut() {
            let socket = &known.socket;
            let blocked_sends = blocked.remove(&(socket.inode, socket.tgid, socket.fd));
            let last = known.sent_last(|port| served.contains(&port));
            let sent_last = last.filter(|_| self.ends && known.seen);
            let is_busy = known.has_something() || blocked_sends.is_some() || sent_last.is_some();
            if is_busy || (known.is_new() && new < SOCKETS) {
                new += usize::from(!is_busy);
                let second = known.second(start_ns, blocked_sends.unwrap_or_default());
                queues.push(QueueSecond { sent_last, ..second });
            }
            if !known.seen
                && let Some(burst) = known.burst.take()
            {
                keep(&mut self.drops, burst);
            }
            known.begin_second();
        }
        let others = blocked.into_iter().map(|(key, sends)| self.unseen(start_ns, key, sends));
        queues.extend(others.collect::<Vec<_>>());
        self.left_out += keep_most_telling(&mut queues, SOCKETS + new);
        // One that was not seen since the last batch has been closed.
        self.known.retain(|_, known| std::mem::replace(&mut known.seen, false));
        queues.sort_by_key(|second| second.socket.inode);
        Sockets { queues, drops: std::mem::take(&mut self.drops) }
    }

    /// Seconds of sockets that were left out because there were too many, since the last call.
    pub fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Sends on a socket that is known by another descriptor, or was closed before a look at it.
    fn unseen(&self, start_ns: u64, key: SendKey, blocked_sends: BlockedSends) -> QueueSecond {
        let (inode, tgid, fd) = key;
        let (kind, address) = self.known.get(&inode).map_or_else(
            || (SocketKind::Other, SocketAddress::default()),
            |known| (known.socket.kind, known.socket.address),
        );
        QueueSecond {
            start_ns,
            socket: Socket { inode, tgid, fd, kind, address },
            looks: 0,
            receive: Depth::default(),
            send: Depth::default(),
            nagle_looks: 0,
            connecting: None,
            drops: 0,
            resent: Resent::default(),
            blocked_sends,
            sent_last: None,
        }
    }

    /// Where sockets of the target listen.
    fn served_ports(&self) -> HashSet<u16> {
        let listening =
            self.known.values().filter(|known| known.socket.kind == SocketKind::TcpListening);
        listening.filter_map(|known| Some(known.socket.address.local?.port())).collect()
    }

    /// Hands over bursts that have not ended, too.
    pub fn end(&mut self) {
        self.ends = true;
        let bursts = self.known.values_mut().filter_map(|known| known.burst.take());
        bursts.for_each(|burst| keep(&mut self.drops, burst));
    }
}

/// Those that lost something or waited, then the fullest; gives how many are left out.
fn keep_most_telling(queues: &mut Vec<QueueSecond>, most: usize) -> u64 {
    let left_out = queues.len().saturating_sub(most);
    if left_out > 0 {
        queues.sort_by_cached_key(|second| {
            let waited = second.blocked_sends.count() > 0 || second.sent_last.is_some();
            let lost = second.drops > 0 || second.resent.segments > 0;
            // Of the others the new ones come first, which are reported once.
            let is_quiet = second.receive.max == 0 && second.send.max == 0;
            Reverse((waited || lost, is_quiet, second.receive.max.max(second.send.max)))
        });
        queues.truncate(most);
    }
    left_out as u64
}

fn keep(drops: &mut Vec<Drops>, burst: Drops) {
    if drops.len() < BURSTS {
        drops.push(burst);
    } else if let Some(last) = drops.last_mut() {
        last.count += burst.count;
    }
}

#[cfg(test)]
mod tests {
    use model::{SentLast, Timeout, TimeoutKind};

    use super::*;

    const MS: u64 = 1_000_000;

    fn look(at_ms: u64, receive: u64, drops: u64) -> queue_record {
        queue_record {
            time_ns: at_ms * MS,
            inode: 5,
            tgid: 10,
            fd: 3,
            family: libc::AF_INET as u16,
            protocol: libc::IPPROTO_UDP as u16,
            local: [127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            local_port: 9000,
            receive,
            receive_limit: 1000,
            drops,
            ..Default::default()
        }
    }

    #[test]
    fn drops_that_follow_each_other_are_one_burst_from_an_empty_queue_on() {
        let mut state = State::default();
        state.reasons.insert(6, "SOCKET_RCVBUFF".to_owned());
        state.note(&look(0, 0, 0));
        state.note(&look(20, 900, 0));
        for (at, drops) in [(40, 7), (60, 30)] {
            let dropping = queue_record {
                drop_first: (at - 5) * MS,
                drop_last: (at - 1) * MS,
                drop_reason: 6,
                ..look(at, 1000, drops)
            };
            state.note(&dropping);
        }
        state.note(&look(80, 0, 30));
        let sockets = state.take(0);
        let [burst] = &sockets.drops[..] else { panic!("{:?}", sockets.drops) };
        assert_eq!((burst.filling_ns, burst.first_ns, burst.last_ns), (0, 35 * MS, 59 * MS));
        assert_eq!((burst.count, burst.queued, burst.limit), (30, 1000, 1000));
        assert_eq!(burst.reason, "SOCKET_RCVBUFF");
        assert_eq!(burst.socket.to_string(), "udp 127.0.0.1:9000 (fd 3)");
        let [second] = &sockets.queues[..] else { panic!("{:?}", sockets.queues) };
        assert_eq!((second.looks, second.drops), (5, 30));
        assert_eq!((second.receive.max, second.receive.max_ns), (1000, 40 * MS));
        assert_eq!(second.receive.mean, 580);
    }

    #[test]
    fn empty_queues_are_reported_once_and_closed_sockets_are_forgotten() {
        let mut state = State::default();
        state.note(&look(0, 0, 0));
        assert_eq!(state.take(0).queues.len(), 1);
        state.note(&look(20, 0, 0));
        assert!(state.take(20).queues.is_empty());
        state.note(&look(40, 5, 2));
        assert_eq!(state.take(40).queues.len(), 1);
        assert_eq!(state.take(60).drops.len(), 1, "a burst ends with its socket");
        assert!(state.known.is_empty());
    }

    #[test]
    fn of_very_many_sockets_the_most_telling_ones_are_kept_and_the_others_counted() {
        let mut state = State::default();
        let numbered = |inode, receive, drops| queue_record { inode, ..look(0, receive, drops) };
        let many = SOCKETS as u64;
        for inode in 0..2 * many {
            state.note(&numbered(inode, 0, 0));
        }
        for inode in 2 * many..4 * many {
            state.note(&numbered(inode, inode, 0));
        }
        state.note(&numbered(9 * many, 0, 3));
        let queues = state.take(0).queues;
        assert_eq!(queues.iter().filter(|second| second.receive.max == 0).count(), SOCKETS + 1);
        assert!(queues.iter().any(|second| second.drops == 3));
        let fullest = queues.iter().filter(|second| second.socket.inode > 3 * many).count();
        assert_eq!((queues.len(), fullest), (2 * SOCKETS, SOCKETS));
        assert_eq!(state.left_out(), many + 1);

        // The quiet ones that had no room are reported next.
        for inode in 0..2 * many {
            state.note(&numbered(inode, 0, 0));
        }
        assert_eq!(state.take(0).queues.len(), SOCKETS);
        assert_eq!(state.left_out(), 0);
    }

    #[test]
    fn what_was_sent_again_is_reported_with_the_timer_that_did_it() {
        let mut state = State::default();
        let tcp = |at, resent, timeouts| queue_record {
            resent,
            timeouts,
            timeout_at: 7 * MS,
            timeout_after: 200 * MS,
            ..look(at, 0, 0)
        };
        state.note(&tcp(0, 0, 0));
        state.take(0);
        state.note(&tcp(20, 3, 1));
        state.note(&tcp(40, 4, 1));
        let [second] = &state.take(20).queues[..] else { panic!("not reported") };
        let kind = TimeoutKind::Retransmission;
        let timeouts = vec![Timeout { at_ns: 7 * MS, kind, after_ns: 200 * MS }];
        assert_eq!(second.resent, Resent { segments: 4, timeouts });
        state.note(&tcp(60, 4, 1));
        assert!(state.take(60).queues.is_empty());
    }

    #[test]
    fn a_burst_at_the_end_of_the_recording_is_told_too() {
        let mut state = State::default();
        state.note(&look(0, 1000, 0));
        state.note(&look(20, 1000, 3));
        state.end();
        let sockets = state.take(0);
        assert_eq!(sockets.drops[0].count, 3);
        assert_eq!(sockets.drops[0].first_ns, 20 * MS, "only the look is known");
    }

    #[test]
    fn at_the_end_what_was_sent_last_on_an_own_connection_is_told() {
        let sent = |local_port, remote_port, role: u32| queue_record {
            inode: u64::from(local_port),
            protocol: libc::IPPROTO_TCP as u16,
            state: 1,
            local_port,
            remote_port,
            role: role as u8,
            sent_at: 5 * MS,
            heard_at: 3 * MS,
            ..look(20, 0, 0)
        };
        let listening = queue_record { state: 10, ..sent(40_001, 0, 0) };
        let unsent = queue_record { send: 7, ..sent(40_005, 80, 1) };
        let unread = queue_record { family: libc::AF_UNIX as u16, inode: 7, ..unsent };
        let mut state = State::default();
        let all = [
            sent(40_000, 80, 0),
            listening,
            queue_record { inode: 9, ..sent(40_001, 50_000, 0) },
            sent(80, 40_002, 0),
            sent(40_003, 80, 2),
            sent(81, 40_004, 1),
            unsent,
            unread,
        ];
        all.iter().for_each(|record| state.note(record));
        assert!(state.take(0).queues.iter().all(|second| second.sent_last.is_none()));
        all.iter().for_each(|record| state.note(record));
        state.end();
        let queues = state.take(20).queues;
        let shown = queues.iter().filter(|second| second.sent_last.is_some());
        let shown: Vec<u64> = shown.map(|second| second.socket.inode).collect();
        assert_eq!(shown, [7, 81, 40_000]);
        let last = SentLast { sent_ns: 5 * MS, heard_ns: Some(3 * MS) };
        assert_eq!(queues[0].sent_last, Some(last));
    }

    #[test]
    fn looks_tell_for_how_long_a_socket_has_had_no_answer_to_its_syn() {
        let tcp = |at_ms, state| queue_record {
            protocol: libc::IPPROTO_TCP as u16,
            state,
            send: 1,
            ..look(at_ms, 0, 0)
        };
        let mut state = State::default();
        let mut seen = |at_ms, in_state, from_ms| {
            state.note(&tcp(at_ms, in_state));
            let connecting = state.take(from_ms * MS).queues[0].connecting;
            connecting.map(|seen| (seen.since_ns / MS, seen.last_ns / MS))
        };
        assert_eq!(seen(100, 7, 0), None);
        assert_eq!(seen(900, 2, 0), Some((900, 900)));
        assert_eq!(seen(1_700, 2, 1_000), Some((900, 1_700)));
        // It is connected, and another second has begun.
        assert_eq!(seen(2_100, 1, 2_000), None);
    }

    #[test]
    fn a_socket_that_listens_stays_one_when_it_is_closed() {
        let tcp = |state, receive_limit| queue_record {
            protocol: libc::IPPROTO_TCP as u16,
            state,
            receive_limit,
            ..look(0, 2, 0)
        };
        let mut state = State::default();
        state.note(&tcp(7, 131_072));
        state.note(&tcp(10, 1));
        state.note(&tcp(7, 131_072));
        let sockets = state.take(0);
        assert_eq!(sockets.queues[0].socket.kind, SocketKind::TcpListening);
        assert_eq!(sockets.queues[0].receive.limit, 1);
    }
}
