//! clock-realtime-coarse: what a read of the wall clock at the last tick costs.

use super::{Benchmark, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-realtime-coarse",
    measures: "clock_gettime(CLOCK_REALTIME_COARSE): the wall clock as of the last tick",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_REALTIME_COARSE),
};
