//! clock-monotonic-raw: what a read of the clock that nobody steers costs.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-monotonic-raw",
    measures: "clock_gettime(CLOCK_MONOTONIC_RAW)",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_MONOTONIC_RAW),
};
