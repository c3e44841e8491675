//! futex-wake-wait-shared: two processes, or two threads, wake each other by shared futexes.

use rustix::thread::futex::Flags;

use super::{Benchmark, PROCESSES, futex_turns, ping_pong};

pub const CASE: Benchmark = Benchmark {
    id: "futex-wake-wait-shared",
    measures: "futex wake of a partner and wait until it has woken this one, shared futexes",
    ladder: PROCESSES,
    prepare: |request| ping_pong::prepare(request, || futex_turns::ends(Flags::empty())),
};
