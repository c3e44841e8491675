//! clock-tai: what a read of the clock without leap seconds costs.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-tai",
    measures: "clock_gettime(CLOCK_TAI)",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_TAI),
};
