//! nanosleep: the shortest sleep, which is as long as the timer slack (50 us unless set).

use rustix::thread::{ClockId, NanosleepRelativeResult, Timespec, clock_nanosleep_relative};

use super::{Benchmark, THREADS, operation};

const SHORTEST: Timespec = Timespec { tv_sec: 0, tv_nsec: 1 };

pub const CASE: Benchmark = Benchmark {
    id: "nanosleep",
    measures: "clock_nanosleep() of 1 ns: timer slack (50 us unless set) and the wake-up",
    ladder: THREADS,
    prepare: operation!(|| match clock_nanosleep_relative(ClockId::Monotonic, &SHORTEST) {
        NanosleepRelativeResult::Err(error) => Err(error),
        NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => Ok(()),
    }),
};
