//! fd-table-threads: as fd-table, but with a second thread: waits for an RCU grace period.

use super::{Benchmark, PROCESSES, growing_table};

pub const CASE: Benchmark = Benchmark {
    id: "fd-table-threads",
    measures: "as fd-table, with a second thread: growing waits for an RCU grace period",
    ladder: PROCESSES,
    prepare: |_| growing_table::prepare(true),
};
