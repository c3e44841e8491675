//! Repeated events of one kind, whose rhythm and company are worth asking for.

use std::collections::BTreeMap;

use model::{Blocked, Outlier, OutlierKind, Run};

use crate::lost::{Class, class};
use crate::pieces::end_of;

/// Events of one kind.
pub(crate) struct Repeated {
    /// `long socket of worker`.
    pub words: String,
    pub events: Vec<Occurrence>,
}

/// One of them.
pub(crate) struct Occurrence {
    pub tgid: u32,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Repeated {
    /// When they began.
    pub fn times(&self) -> Vec<u64> {
        self.events.iter().map(|event| event.from_ns).collect()
    }
}

/// Drops by socket; long calls and sleeps by program and call, those that wait for work left out.
pub(crate) fn repeated(run: &Run) -> Vec<Repeated> {
    let mut groups = BTreeMap::<String, Vec<Occurrence>>::new();
    for drops in &run.sockets.drops {
        let (from_ns, to_ns) = (drops.first_ns, drops.last_ns);
        let event = Occurrence { tgid: drops.socket.tgid, from_ns, to_ns };
        groups.entry(format!("drops at {}", drops.socket)).or_default().push(event);
    }
    for outlier in run.outliers.iter().filter(|outlier| is_lost(outlier)) {
        let name = run.comm(outlier.tgid);
        let words = match (outlier.blocked, outlier.syscall) {
            (Some(Blocked::SocketSend), _) => format!("sends of {name} that waited"),
            (_, Some(call)) => format!("long {} of {name}", call.call),
            (Some(kind), None) => format!("waits of {name} for {}", kind.name()),
            (None, None) => continue,
        };
        let (from_ns, to_ns) = (outlier.start_ns, end_of(outlier));
        let event = Occurrence { tgid: outlier.tgid, from_ns, to_ns };
        groups.entry(words).or_default().push(event);
    }
    groups.into_iter().map(|(words, events)| Repeated { words, events }).collect()
}

/// Most of it is no wait for work.
fn is_lost(outlier: &Outlier) -> bool {
    let idle = outlier.breakdown.sum_of(|account| class(account) == Class::Idle);
    outlier.kind != OutlierKind::LockHold && idle < outlier.duration_ns / 2
}
