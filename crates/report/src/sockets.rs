//! The target's sockets: how full their queues were, what was dropped at them, what TCP sent once
//! more, and the sends that found no room.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::units::{bytes, count, counted, duration};
use model::{BlockedSends, Depth, QueueSecond, Run, Socket, SocketKind, Timeout, TimeoutKind};

use crate::show::more;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Sockets in the table; bursts of drops and timeouts below it.
const SOCKETS: usize = 20;
const BURSTS: usize = 20;
const TIMEOUTS: usize = 20;

/// A socket over the run.
#[derive(Default)]
struct Row {
    looks: u64,
    receive_sum: u64,
    receive: Depth,
    send: Depth,
    drops: u64,
    resent: u64,
    blocked: BlockedSends,
    /// Seconds with such sends, and the most of one.
    blocked_seconds: u64,
    blocked_most: u64,
}

impl Row {
    fn add(&mut self, second: &QueueSecond) {
        self.looks += second.looks;
        self.receive_sum += second.receive.mean * second.looks;
        keep_larger(&mut self.receive, second.receive);
        keep_larger(&mut self.send, second.send);
        self.drops += second.drops;
        self.resent += second.resent.segments;
        let blocked = &second.blocked_sends;
        self.blocked.refused += blocked.refused;
        self.blocked.waited += blocked.waited;
        self.blocked.waited_ns += blocked.waited_ns;
        self.blocked_seconds += u64::from(blocked.count() > 0);
        self.blocked_most = self.blocked_most.max(blocked.count());
    }

    /// The larger, the more it is worth to be shown.
    fn rank(&self) -> (u64, u64, u64, u64, u64) {
        let full = self.receive.max.saturating_mul(1000) / self.receive.limit.max(1);
        (self.drops, self.resent, self.blocked.count(), full, self.send.max)
    }
}

/// Writes the sockets, those with drops, timeouts and the longest queues first, then the drops,
/// timeouts and blocked sends. Nothing if none were seen.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let mut rows = BTreeMap::<&Socket, Row>::new();
    for second in &run.sockets.queues {
        rows.entry(&second.socket).or_default().add(second);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.rank()));

    writeln!(
        out,
        "\n{}",
        style.bold("Sockets (a look each 20 ms or more; seconds with nothing queued left out)")
    )?;
    let mut table = Table::new(
        2,
        &[
            ("socket", Align::Left),
            ("looks", Align::Right),
            ("queued, mean", Align::Right),
            ("largest", Align::Right),
            ("of", Align::Right),
            ("dropped", Align::Right),
        ],
    );
    for (socket, row) in rows.iter().take(SOCKETS) {
        let depth = |n| if socket.kind.counts_bytes() { bytes(n) } else { count(n) };
        let bad = |n| if n == 0 { Cell::from("0") } else { Cell::painted(count(n), Paint::Red) };
        let limit = match row.receive.limit {
            0 => String::new(),
            limit => depth(limit),
        };
        table.row([
            socket.to_string().into(),
            count(row.looks).into(),
            depth(row.receive_sum.checked_div(row.looks).unwrap_or(0)).into(),
            depth(row.receive.max).into(),
            limit.into(),
            bad(row.drops),
        ]);
        table.note(0, rest(run, socket, row));
    }
    table.write(out, style)?;
    more(out, style, rows.len() as u64, SOCKETS, "socket")?;
    bursts(out, run, style)?;
    timeouts(out, run, style)?;
    rows.iter().take(SOCKETS).try_for_each(|(socket, row)| blocked(out, style, socket, row))
}

/// Whose it is, and what it sent.
fn rest(run: &Run, socket: &Socket, row: &Row) -> String {
    let mut words = format!("{} ({})", run.comm(socket.tgid), socket.tgid);
    if row.send.max > 0 && socket.kind != SocketKind::TcpListening {
        words += &format!("; at most {} to send", bytes(row.send.max));
    }
    if row.resent > 0 {
        words += &format!("; {} sent again", counted(row.resent, "segment"));
    }
    words
}

fn keep_larger(largest: &mut Depth, other: Depth) {
    if other.max >= largest.max {
        *largest = other;
    }
}

fn bursts(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    for drops in run.sockets.drops.iter().take(BURSTS) {
        let reason = if drops.reason.is_empty() { "reason not reported" } else { &drops.reason };
        let filled = drops.first_ns.saturating_sub(drops.filling_ns);
        let queue = match drops.queued {
            0 => String::new(),
            _ => format!("; the queue had filled for {}", duration(filled)),
        };
        let line = format!(
            "+{}: {} dropped within {} at {}: {reason}{queue}",
            duration(drops.first_ns.saturating_sub(run.header.started_ns)),
            counted(drops.count, "packet"),
            duration(drops.last_ns.saturating_sub(drops.first_ns)),
            drops.socket,
        );
        wrapped(out, style, &line)?;
    }
    more(out, style, run.sockets.drops.len() as u64, BURSTS, "burst")
}

/// Timers of TCP that fired, in time order.
fn timeouts(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let seconds = run.sockets.queues.iter();
    let mut all: Vec<(&Timeout, &Socket)> =
        seconds.flat_map(|s| s.resent.timeouts.iter().map(|t| (t, &s.socket))).collect();
    all.sort_by_key(|(timeout, _)| timeout.at_ns);
    for (timeout, socket) in all.iter().take(TIMEOUTS) {
        let after = duration(timeout.after_ns);
        let why = match timeout.kind {
            TimeoutKind::Retransmission => format!("nothing was acknowledged for {after}"),
            TimeoutKind::Connecting => format!("not connected after {after}"),
            TimeoutKind::Probe => "a probe whether the last segment was lost".to_owned(),
        };
        let at = duration(timeout.at_ns.saturating_sub(run.header.started_ns));
        wrapped(out, style, &format!("+{at}: a timer sent a segment of {socket} again: {why}"))?;
    }
    more(out, style, all.len() as u64, TIMEOUTS, "timeout")
}

/// Sends of a socket that found no room, over the run.
fn blocked(out: &mut dyn Write, style: &Style, socket: &Socket, row: &Row) -> io::Result<()> {
    let sends = &row.blocked;
    if sends.count() == 0 {
        return Ok(());
    }
    let line = format!(
        "{} found no room on {socket}: {} refused, {} waited {} in all; in {}, at most {} in one",
        counted(sends.count(), "send"),
        count(sends.refused),
        count(sends.waited),
        duration(sends.waited_ns),
        counted(row.blocked_seconds, "second"),
        count(row.blocked_most)
    );
    wrapped(out, style, &line)
}

/// A line below the table, broken where the terminal ends.
fn wrapped(out: &mut dyn Write, style: &Style, line: &str) -> io::Result<()> {
    let lines = text::wrap(line, style.width.saturating_sub(4));
    lines
        .iter()
        .enumerate()
        .try_for_each(|(n, line)| writeln!(out, "{}{line}", if n == 0 { "  " } else { "    " }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Drops, Resent, SocketAddress, Sockets};

    fn address() -> SocketAddress {
        "[::1]:9".parse().unwrap()
    }

    #[test]
    fn a_socket_that_lost_packets_comes_first_with_its_bursts() {
        let socket =
            |fd: u32, kind| Socket { inode: fd.into(), tgid: 77, fd, kind, address: address() };
        let second = |socket: &Socket, largest, drops| QueueSecond {
            start_ns: 0,
            socket: socket.clone(),
            looks: 50,
            receive: Depth { mean: largest / 2, max: largest, max_ns: 1, limit: 200_000 },
            send: Depth::default(),
            nagle_looks: 0,
            connecting: None,
            drops,
            resent: Resent::default(),
            blocked_sends: BlockedSends::default(),
            sent_last: None,
        };
        let (quiet, lossy) = (socket(4, SocketKind::Tcp), socket(3, SocketKind::Udp));
        let mut run = sample::run();
        let begin = run.header.started_ns;
        run.sockets = Sockets {
            queues: vec![
                second(&quiet, 200_000, 0),
                second(&lossy, 1_000, 7),
                second(&lossy, 3_000, 0),
            ],
            drops: vec![Drops {
                socket: lossy,
                reason: "SOCKET_RCVBUFF".into(),
                filling_ns: begin + 10_000_000,
                first_ns: begin + 14_000_000,
                last_ns: begin + 20_000_000,
                count: 7,
                queued: 3_000,
                limit: 200_000,
            }],
        };
        let mut out = Vec::new();
        write(&mut out, &run, &Style { color: false, width: 80 }).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!((&words[..4], words.last()), (&["udp", "[::1]:9", "(fd", "3)"][..], Some(&"7")));
        assert!(
            lines[4].contains("scan (77)") && lines[5].contains("tcp [::1]:9 (fd 4)"),
            "{text}"
        );
        assert!(lines[7].contains("+14.0 ms: 7 packets dropped within 6.00 ms"), "{text}");
        assert!(lines[8].ends_with("queue had filled for 4.00 ms"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn timeouts_and_blocked_sends_are_said_below_the_table() {
        let mut run = sample::run();
        let begin = run.header.started_ns;
        let kind = SocketKind::Tcp;
        let at_ns = begin + 50_000_000;
        let timeout = Timeout { at_ns, kind: TimeoutKind::Retransmission, after_ns: 204_000_000 };
        let second = |refused| QueueSecond {
            start_ns: begin,
            socket: Socket { inode: 9, tgid: 77, fd: 4, kind, address: address() },
            looks: 50,
            receive: Depth::default(),
            send: Depth::default(),
            nagle_looks: 0,
            connecting: None,
            drops: 0,
            resent: Resent { segments: 1, timeouts: vec![timeout] },
            blocked_sends: BlockedSends { refused, waited: 2, ..BlockedSends::default() },
            sent_last: None,
        };
        run.sockets.queues = vec![second(5), second(8)];
        let mut out = Vec::new();
        write(&mut out, &run, &Style { color: false, width: 140 }).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "+50.0 ms: a timer sent a segment of tcp [::1]:9 (fd 4) again: nothing was \
                    acknowledged for 204 ms";
        assert!(text.contains(expected), "{text}");
        let expected = "17 sends found no room on tcp [::1]:9 (fd 4): 13 refused, 4 waited 0 ns in all; in 2 \
                    seconds, at most 10 in one";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn nothing_is_said_of_a_run_without_sockets() {
        let mut out = Vec::new();
        write(&mut out, &sample::run(), &Style { color: false, width: 80 }).unwrap();
        assert!(out.is_empty());
    }
}
