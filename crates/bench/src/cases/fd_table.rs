//! fd-table: the table of descriptors grows, of a process with one thread.

use super::{Benchmark, PROCESSES, growing_table};

pub const CASE: Benchmark = Benchmark {
    id: "fd-table",
    measures: "dup2() to descriptor 512 when the table ends before it, no second thread",
    ladder: PROCESSES,
    prepare: |_| growing_table::prepare(false),
};
