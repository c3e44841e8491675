//! empty: nothing at all; what the harness itself costs.

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "empty",
    measures: "no operation: what the clock and the harness cost",
    ladder: THREADS,
    prepare: operation!(|| Ok(())),
};
