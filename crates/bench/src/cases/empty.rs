//! empty: nothing at all; what the harness itself costs.

use super::{Alone, Case};

pub const CASE: Case = Case {
    id: "empty",
    measures: "no operation: what the clock and the harness cost",
    prepare: |_| Ok(Box::new(Alone(|_| Ok(Box::new(|| Ok(())) as _)))),
};
