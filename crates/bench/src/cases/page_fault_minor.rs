//! page-fault-minor: a page of memory, zeroed and mapped when it is first touched.

use rustix::mm::ProtFlags;

use super::mapping::{FirstTouches, Mapping};
use super::{Alone, Benchmark, THREADS};

/// Memory of a worker, bytes: it is given back, untimed, and touched again.
const BYTES: usize = 4 << 20;

pub const CASE: Benchmark = Benchmark {
    id: "page-fault-minor",
    measures: "first touch of a page of anonymous memory",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let memory = Mapping::anonymous(BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
            Ok(Box::new(FirstTouches::of(memory)) as _)
        })))
    },
};
