//! The target's sockets: how full their queues were, and what was dropped at them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::{Depth, Run, Socket, SocketKind};

use crate::Style;
use crate::show::more;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::units::{bytes, count, duration, plural};

/// Sockets in the table, and bursts of drops below it.
const SOCKETS: usize = 20;
const BURSTS: usize = 20;

/// A socket over the run.
#[derive(Default)]
struct Row {
    looks: u64,
    receive_sum: u64,
    receive: Depth,
    send: Depth,
    drops: u64,
}

/// Writes the sockets, those with drops and with the longest queues first, then the drops. Nothing
/// if none were seen.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let mut rows = BTreeMap::<&Socket, Row>::new();
    for second in &run.sockets.queues {
        let row = rows.entry(&second.socket).or_default();
        row.looks += second.looks;
        row.receive_sum += second.receive.mean * second.looks;
        keep_larger(&mut row.receive, second.receive);
        keep_larger(&mut row.send, second.send);
        row.drops += second.drops;
    }
    if rows.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    let part = |depth: &Depth| depth.max.saturating_mul(1000) / depth.limit.max(1);
    rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.drops, part(&row.receive), row.send.max)));

    writeln!(out, "\n{}", style.bold("Sockets (looked at every 20 ms while not empty)"))?;
    let mut table = Table::new(
        2,
        &[
            ("socket", Align::Left),
            ("process", Align::Left),
            ("looks", Align::Right),
            ("received, mean", Align::Right),
            ("largest", Align::Right),
            ("of", Align::Right),
            ("to send, largest", Align::Right),
            ("dropped", Align::Right),
        ],
    );
    for (socket, row) in rows.iter().take(SOCKETS) {
        let depth = |n| if socket.kind.counts_bytes() { bytes(n) } else { count(n) };
        let drops = match row.drops {
            0 => Cell::from("0"),
            n => Cell::painted(count(n), Paint::Red),
        };
        let limit = match row.receive.limit {
            0 => String::new(),
            limit => depth(limit),
        };
        let sends = socket.kind != SocketKind::TcpListening;
        table.row([
            socket.to_string().into(),
            format!("{} ({})", run.comm(socket.tgid), socket.tgid).into(),
            count(row.looks).into(),
            depth(row.receive_sum.checked_div(row.looks).unwrap_or(0)).into(),
            depth(row.receive.max).into(),
            limit.into(),
            if sends { bytes(row.send.max) } else { String::new() }.into(),
            drops,
        ]);
    }
    table.write(out, style)?;
    more(out, style, rows.len() as u64, SOCKETS, "socket")?;
    bursts(out, run, style)
}

fn keep_larger(largest: &mut Depth, other: Depth) {
    if other.max >= largest.max {
        *largest = other;
    }
}

fn bursts(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    for drops in run.sockets.drops.iter().take(BURSTS) {
        let reason = if drops.reason.is_empty() { "reason not told" } else { &drops.reason };
        writeln!(
            out,
            "  +{}: {} dropped within {} at {}: {reason}; the queue had filled for {}",
            duration(drops.first_ns.saturating_sub(run.header.started_ns)),
            plural(drops.count, "packet"),
            duration(drops.last_ns.saturating_sub(drops.first_ns)),
            drops.socket,
            duration(drops.first_ns.saturating_sub(drops.filling_ns)),
        )?;
    }
    more(out, style, run.sockets.drops.len() as u64, BURSTS, "burst")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Drops, QueueSecond, Sockets};

    #[test]
    fn a_socket_that_lost_packets_comes_first_with_its_bursts() {
        let socket =
            |fd: u32, kind| Socket { inode: fd.into(), tgid: 77, fd, kind, address: "a".into() };
        let second = |socket: &Socket, largest, drops| QueueSecond {
            start_ns: 0,
            socket: socket.clone(),
            looks: 50,
            receive: Depth { mean: largest / 2, max: largest, max_ns: 1, limit: 200_000 },
            send: Depth::default(),
            drops,
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
        write(&mut out, &run, &Style { color: false, width: 120 }).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].contains("udp a (fd 3)") && lines[3].ends_with('7'), "{text}");
        assert!(lines[4].contains("tcp a (fd 4)") && lines[4].contains("scan (77)"), "{text}");
        assert!(lines[5].contains("+14.0 ms: 7 packets dropped within 6.00 ms"), "{text}");
        assert!(lines[5].ends_with("the queue had filled for 4.00 ms"), "{text}");
    }

    #[test]
    fn nothing_is_said_of_a_run_without_sockets() {
        let mut out = Vec::new();
        write(&mut out, &sample::run(), &Style { color: false, width: 120 }).unwrap();
        assert!(out.is_empty());
    }
}
