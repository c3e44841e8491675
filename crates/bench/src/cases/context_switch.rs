//! context-switch: from one thread or process to another and back, on the same CPU.

use model::WorkerKind;
use rustix::thread::futex::Flags;

use super::{Alone, Case, THREADS, futex_turns, ping_pong};
use crate::spin;

pub const CASE: Case = Case {
    id: "context-switch",
    measures: "two switches on one CPU: futex wake of a partner there, wait, and it does the same",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        let flags = match kind {
            WorkerKind::Threads => Flags::PRIVATE,
            WorkerKind::Processes => Flags::empty(),
        };
        Ok(Box::new(Alone(move |id| {
            // The partner inherits it.
            spin::bind_to(id);
            ping_pong::player(kind, futex_turns::ends(flags)?)
        })))
    },
};
