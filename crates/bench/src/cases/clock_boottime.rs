//! clock-boottime: what a read of the clock that counts suspension costs.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-boottime",
    measures: "clock_gettime(CLOCK_BOOTTIME)",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_BOOTTIME),
};
