//! Rare events: from a record of the kernel side to the model.

use model::{Event, EventDetail, EventKind, Syscall};

use crate::bpf::{self, event_record};
use crate::wire;

/// An event; `None` if its kind is not known.
pub fn event(record: &event_record) -> Option<Event> {
    let device = || EventDetail::Device(wire::device_name(record.value2));
    let program = || EventDetail::Program(bpf::text(&record.text));
    let (kind, detail) = match wire::EventKind::of(record.kind)? {
        wire::EventKind::Exec => (EventKind::Exec, program()),
        wire::EventKind::Fork => (EventKind::Fork, program()),
        wire::EventKind::Exit => (EventKind::Exit, program()),
        wire::EventKind::Signal => {
            let (comm, tid) = (bpf::text(&record.text), record.value2 as u32);
            (EventKind::Signal, EventDetail::Sender { comm, tid })
        }
        wire::EventKind::Reclaim => (EventKind::DirectReclaim, EventDetail::None),
        wire::EventKind::Compaction => (EventKind::Compaction, EventDetail::None),
        wire::EventKind::DirtyThrottle => (EventKind::DirtyThrottle, EventDetail::None),
        wire::EventKind::JournalCommit => (EventKind::JournalCommit, device()),
        wire::EventKind::BlockIo => (EventKind::BlockIo, device()),
        wire::EventKind::HeldSend => {
            let (call, times) = (Syscall(record.value2 as u16), record.value2 >> 16);
            (EventKind::HeldSend, EventDetail::Waits { call, times })
        }
        wire::EventKind::Spin => {
            let call = wire::call(record.value2 as u16);
            (EventKind::Spin, call.map_or(EventDetail::None, EventDetail::Call))
        }
    };
    Some(Event {
        time_ns: record.time_ns,
        kind,
        tid: record.tid,
        tgid: record.tgid,
        value: record.value,
        detail,
    })
}
