//! memcpy: the speed of memory and its caches, shared by all CPUs.

use std::hint::black_box;

use super::{Benchmark, THREADS, operation};

/// Bytes moved.
const BYTES: usize = 1 << 20;

pub const CASE: Benchmark = Benchmark {
    id: "memcpy",
    measures: "memcpy() of 1 MB",
    ladder: THREADS,
    prepare: operation!({
        let (from, mut to) = (vec![1u8; BYTES], vec![0u8; BYTES]);
        move || {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            Ok(())
        }
    }),
};
