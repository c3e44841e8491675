//! futex-wake-wait: two threads wake each other by futexes of their process.

use model::WorkerKind;
use rustix::thread::futex::Flags;

use super::{Benchmark, THREADS, futex_turns, ping_pong};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "futex-wake-wait",
    measures: "futex wake of a thread and wait until it has woken this one, private futexes",
    ladder: THREADS,
    prepare: |request| match request.kind {
        WorkerKind::Threads => ping_pong::prepare(request, || futex_turns::ends(Flags::PRIVATE)),
        WorkerKind::Processes => Err(Error::Refused(
            "private futexes do not wake other processes; take futex-wake-wait-shared".to_owned(),
        )),
    },
};
