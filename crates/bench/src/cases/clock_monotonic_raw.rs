//! clock-monotonic-raw: what a read of the clock that nobody steers costs.

use super::{Case, clock_read};

pub const CASE: Case = Case {
    id: "clock-monotonic-raw",
    measures: "clock_gettime(CLOCK_MONOTONIC_RAW)",
    ladder: clock_read::READERS,
    prepare: |_| clock_read::prepare(libc::CLOCK_MONOTONIC_RAW),
};
