//! clock-realtime: what a read of the wall clock costs. (story 5)

use super::{Benchmark, Ladder, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-realtime",
    measures: "clock_gettime(CLOCK_REALTIME)",
    ladder: Ladder { shape: Some(clock_read::shape), ..clock_read::READERS },
    prepare: |_| clock_read::prepare(libc::CLOCK_REALTIME),
};
