//! context-switch: from one thread or process to another and back, on the same CPU.

use rustix::thread::futex::Flags;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use super::{Case, THREADS, futex_turns, ping_pong};

pub const CASE: Case = Case {
    id: "context-switch",
    measures: "two switches: to a partner on the same CPU by futex, and back",
    ladder: THREADS,
    prepare: |request| ping_pong::prepare(request, || futex_turns::ends(Flags::empty())),
};
