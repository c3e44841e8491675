//! fd-table-threads: as fd-table, but with a second thread: waits for an RCU grace period.

use super::{Case, PROCESSES, growing_table};

pub const CASE: Case = Case {
    id: "fd-table-threads",
    measures: "as fd-table, with a second thread: growing waits for an RCU grace period",
    ladder: PROCESSES,
    prepare: |_| growing_table::prepare(true),
};
