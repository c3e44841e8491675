//! clock-monotonic: what a read of the clock for intervals costs, alone and with other readers. (story 5)

use super::{Benchmark, Ladder, clock_read};

pub const CASE: Benchmark = Benchmark {
    id: "clock-monotonic",
    measures: "clock_gettime(CLOCK_MONOTONIC)",
    ladder: Ladder { shape: Some(clock_read::shape), ..clock_read::READERS },
    prepare: |_| clock_read::prepare(libc::CLOCK_MONOTONIC),
};
