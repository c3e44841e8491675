//! Rare things worth keeping one by one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Syscall;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A watched process called exec.
    Exec,
    /// A watched thread or process was created; `value` is its tid.
    Fork,
    /// A watched process ended; `value` is its exit code as wait() reports it.
    Exit,
    /// A signal was delivered; `value` is its number.
    Signal,
    /// Direct reclaim ended; `value` is its duration in ns.
    DirectReclaim,
    /// Compaction ended; `value` is its duration in ns.
    Compaction,
    /// balance_dirty_pages paused the writer; `value` is the pause asked for, in ns.
    DirtyThrottle,
    /// The ext4 journal committed; `value` is the time running + flushing + logging, in ns.
    JournalCommit,
    /// A block I/O request beyond the threshold; `value` is its duration in ns.
    BlockIo,
    /// A thread held a send back: it did nothing but wait (sched_yield, nanosleep) and then sent;
    /// `value` is the time from the first of these calls to the send, in ns, at least the run's
    /// threshold; `detail` the call and how often it was made.
    HeldSend,
    /// A thread waited for a spinlock of the kernel, in no recorded call; `value` is the time, in ns, at
    /// least the run's threshold; `detail` the call that it was in, if any.
    Spin,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "EventText", try_from = "EventText")]
pub struct Event {
    /// When.
    pub time_ns: u64,
    /// What.
    pub kind: EventKind,
    /// Thread it happened to, 0 for the host.
    pub tid: u32,
    /// Its process, 0 for the host.
    pub tgid: u32,
    /// As the kind says.
    pub value: u64,
    /// What else is known.
    pub detail: EventDetail,
}

impl Event {
    /// When it was over: a held send and a spin are noted with their begin and their length, any other
    /// event with one moment.
    pub fn end_ns(&self) -> u64 {
        match self.kind {
            EventKind::HeldSend | EventKind::Spin => self.time_ns.saturating_add(self.value),
            _ => self.time_ns,
        }
    }
}

/// What else is known of an event; its text is what is stored and exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventDetail {
    /// Nothing.
    #[default]
    None,
    /// Of an exec the program's path, of a fork the name of the new thread.
    Program(String),
    /// Who sent a signal.
    Sender {
        /// Name of the thread.
        comm: String,
        /// The thread.
        tid: u32,
    },
    /// `MAJOR:MINOR` of a block device.
    Device(String),
    /// What a thread did while it held a send back.
    Waits {
        /// The call that it waited with.
        call: Syscall,
        /// How often it made that call.
        times: u64,
    },
    /// The call in which it came.
    Call(Syscall),
}

impl EventDetail {
    /// Reads the text of an event of this kind.
    ///
    /// # Errors
    /// If no event of this kind has such a text.
    pub fn read(kind: EventKind, text: &str) -> Result<EventDetail, String> {
        let wrong = || format!("'{text}' is no detail of {kind:?}");
        Ok(match kind {
            _ if text.is_empty() => EventDetail::None,
            EventKind::Exec | EventKind::Fork => EventDetail::Program(text.to_owned()),
            EventKind::BlockIo | EventKind::JournalCommit => EventDetail::Device(text.to_owned()),
            EventKind::Signal => {
                let (comm, tid) = text
                    .strip_prefix("from ")
                    .and_then(|text| text.strip_suffix(')')?.rsplit_once(" (tid "))
                    .ok_or_else(wrong)?;
                let tid = tid.parse().map_err(|_| wrong())?;
                EventDetail::Sender { comm: comm.to_owned(), tid }
            }
            EventKind::HeldSend => {
                let words = text.strip_suffix(" times").and_then(|text| text.split_once(' '));
                let (call, times) = words.ok_or_else(wrong)?;
                let times = times.parse().map_err(|_| wrong())?;
                EventDetail::Waits { call: call.parse()?, times }
            }
            EventKind::Spin => EventDetail::Call(text.parse()?),
            EventKind::Exit
            | EventKind::DirectReclaim
            | EventKind::Compaction
            | EventKind::DirtyThrottle => return Err(wrong()),
        })
    }
}

impl fmt::Display for EventDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventDetail::None => Ok(()),
            EventDetail::Program(text) | EventDetail::Device(text) => f.write_str(text),
            EventDetail::Sender { comm, tid } => write!(f, "from {comm} (tid {tid})"),
            EventDetail::Waits { call, times } => write!(f, "{call} {times} times"),
            EventDetail::Call(call) => write!(f, "{call}"),
        }
    }
}

/// An event as it is exported: its detail can only be read with its kind.
#[derive(Serialize, Deserialize)]
struct EventText {
    time_ns: u64,
    kind: EventKind,
    tid: u32,
    tgid: u32,
    value: u64,
    detail: String,
}

impl From<Event> for EventText {
    fn from(event: Event) -> EventText {
        let Event { time_ns, kind, tid, tgid, value, detail } = event;
        EventText { time_ns, kind, tid, tgid, value, detail: detail.to_string() }
    }
}

impl TryFrom<EventText> for Event {
    type Error = String;

    fn try_from(event: EventText) -> Result<Event, String> {
        let EventText { time_ns, kind, tid, tgid, value, detail } = event;
        let detail = EventDetail::read(kind, &detail)?;
        Ok(Event { time_ns, kind, tid, tgid, value, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_read_back_from_their_text() {
        let sender = EventDetail::Sender { comm: "from a (tid 3)".into(), tid: 77 };
        let call = Syscall::named("sched_yield").unwrap();
        for (kind, detail, text) in [
            (EventKind::Exec, EventDetail::Program("/bin/true".into()), "/bin/true"),
            (EventKind::BlockIo, EventDetail::Device("8:16".into()), "8:16"),
            (EventKind::Signal, sender, "from from a (tid 3) (tid 77)"),
            (EventKind::HeldSend, EventDetail::Waits { call, times: 12 }, "sched_yield 12 times"),
            (EventKind::Spin, EventDetail::Call(call), "sched_yield"),
            (EventKind::Exit, EventDetail::None, ""),
        ] {
            assert_eq!(detail.to_string(), text);
            assert_eq!(EventDetail::read(kind, text), Ok(detail));
        }
        assert!(EventDetail::read(EventKind::HeldSend, "sched_yield often").is_err());
        assert!(EventDetail::read(EventKind::Signal, "8:16").is_err());
    }
}
