//! Slow requests and messages, with their parts.

use model::units::{count, duration};
use model::{Message, Run, SegmentKind};
use serde::Serialize;

/// Requests that are shown: the slowest.
const SHOWN: usize = 200;

/// The slow requests of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Requests {
    /// The slowest first.
    pub rows: Vec<Request>,
    /// How many of how many.
    pub basis: String,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Request {
    /// Its number in `show` and `explain --message`.
    pub number: usize,
    /// What kind, and of which process.
    pub name: String,
    /// Begin, since the start of the run.
    pub from_ns: u64,
    /// Length.
    pub ns: u64,
    /// The same as people read it.
    pub time: String,
    /// What it waited for, one part after the other.
    pub parts: Vec<Part>,
    /// The command that explains it.
    pub command: String,
}

/// A part of a request.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// Length.
    pub ns: u64,
    /// The same as people read it.
    pub time: String,
    /// True until the logic began.
    pub waiting: bool,
}

/// Of a run.
pub fn requests(run: &Run, name: &str) -> Requests {
    let slow = run.messages.slow.iter().enumerate().take(SHOWN);
    let rows: Vec<Request> =
        slow.filter_map(|(place, message)| request(run, message, place + 1, name)).collect();
    let basis = match rows.len() as u64 {
        0 => "no request was slow, or none was seen".to_owned(),
        shown => {
            format!("n = {} of {} that were slow", count(shown), count(run.messages.slow_count))
        }
    };
    Requests { rows, basis }
}

fn request(run: &Run, message: &Message, number: usize, name: &str) -> Option<Request> {
    let flow = run.messages.flow_of(message)?;
    let tgid = run.messages.program(message.program)?.tgid;
    let parts = message.segments().into_iter().map(|segment| {
        let ahead = match segment.kind {
            SegmentKind::Behind(ahead) => run.messages.flow(message.program, ahead.flow),
            _ => None,
        };
        Part {
            name: segment.name(flow, ahead),
            ns: segment.ns(),
            time: duration(segment.ns()),
            waiting: segment.is_infrastructure(),
        }
    });
    Some(Request {
        number,
        name: format!("{} of {} (pid {tgid})", flow.name, run.comm(tgid)),
        from_ns: message.t0_ns.saturating_sub(run.header.started_ns),
        ns: message.total_ns(),
        time: duration(message.total_ns()),
        parts: parts.collect(),
        command: format!("whylag explain {name} --message {number}"),
    })
}
