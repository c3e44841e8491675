//! empty: nothing at all; what the harness itself costs.

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "empty",
    measures: "no operation: what the clock and the harness cost",
    ladder: THREADS,
    prepare: operation!(|| Ok(())),
};
