//! Recurring events of one kind, which may have a rhythm or coincide with other programs.

use std::collections::BTreeMap;

use model::{Blocked, EventDetail, EventKind, Outlier, OutlierKind, Run};

use crate::case::held_sends;
use crate::case::lost::{Class, class};

/// A process from one exec to the next.
pub(crate) type Life = (u32, usize);

/// Events of one kind.
pub(crate) struct Recurring {
    /// `long socket of worker`.
    pub name: String,
    pub events: Vec<Occurrence>,
}

/// One of them.
pub(crate) struct Occurrence {
    /// In which it began.
    pub life: Life,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Recurring {
    /// When they began.
    pub fn times(&self) -> Vec<u64> {
        self.events.iter().map(|event| event.from_ns).collect()
    }
}

/// Drops, timeouts and sends without room by socket; sends held back, long calls, sleeps and waits for
/// spinlocks by program and call, those that wait for work left out.
pub(crate) fn recurring(run: &Run) -> Vec<Recurring> {
    let mut groups = BTreeMap::<String, Vec<Occurrence>>::new();
    let mut add = |name: String, tgid: u32, from_ns: u64, to_ns: u64| {
        let life = (tgid, run.execs(tgid, from_ns));
        groups.entry(name).or_default().push(Occurrence { life, from_ns, to_ns });
    };
    for drops in &run.sockets.drops {
        let name = format!("drops at {}", drops.socket);
        add(name, drops.socket.tgid, drops.first_ns, drops.last_ns);
    }
    for second in &run.sockets.queues {
        let (socket, tgid) = (&second.socket, second.socket.tgid);
        for timeout in &second.resent.timeouts {
            add(format!("timeouts of {socket}"), tgid, timeout.at_ns, timeout.at_ns);
        }
        for begin in &second.blocked_sends.bursts_ns {
            add(format!("sends without room on {socket}"), tgid, *begin, *begin);
        }
    }
    for event in held_sends::kept(run) {
        let name = format!("sends that {} held back", run.comm(event.tgid));
        add(name, event.tgid, event.time_ns, event.end_ns());
    }
    for event in run.events.iter().filter(|event| event.kind == EventKind::Spin) {
        let within = match &event.detail {
            EventDetail::Call(call) => format!(" in {call}"),
            _ => String::new(),
        };
        let name = format!("spinning{within} of {}", run.comm(event.tgid));
        add(name, event.tgid, event.time_ns, event.end_ns());
    }
    let of_sockets = run.sockets.queues.iter().any(|second| second.blocked_sends.waited > 0);
    for outlier in run.outliers.iter().filter(|outlier| is_lost(outlier)) {
        if outlier.blocked == Some(Blocked::SocketSend) && of_sockets {
            continue; // counted by socket, the short ones too
        }
        if let Some(name) = name_of(run, outlier) {
            add(name, outlier.tgid, outlier.start_ns, outlier.end_ns());
        }
    }
    groups.into_iter().map(|(name, events)| Recurring { name, events }).collect()
}

fn name_of(run: &Run, outlier: &Outlier) -> Option<String> {
    let name = run.comm(outlier.tgid);
    Some(match (outlier.blocked, outlier.syscall) {
        _ if outlier.kind == OutlierKind::FirstCall => format!("long first calls of {name}"),
        (Some(Blocked::SocketSend), _) => format!("sends of {name} that waited"),
        (_, Some(call)) => format!("long {} of {name}", call.call),
        (Some(kind), None) => format!("waits of {name} for {}", kind.name()),
        (None, None) => return None,
    })
}

/// Most of it is no wait for work.
fn is_lost(outlier: &Outlier) -> bool {
    let idle = outlier.breakdown.sum_of(|account| class(account) == Class::Idle);
    outlier.kind != OutlierKind::LockHold && idle < outlier.duration_ns / 2
}
