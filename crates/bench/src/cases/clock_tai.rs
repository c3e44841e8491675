//! clock-tai: what a read of the clock without leap seconds costs.

use super::{Case, clock_read};

pub const CASE: Case = Case {
    id: "clock-tai",
    measures: "clock_gettime(CLOCK_TAI)",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_TAI),
};
