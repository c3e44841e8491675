//! clock-monotonic-coarse: what a read of the clock at the last tick costs.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-monotonic-coarse",
    measures: "clock_gettime(CLOCK_MONOTONIC_COARSE): as of the last tick",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_MONOTONIC_COARSE),
};
