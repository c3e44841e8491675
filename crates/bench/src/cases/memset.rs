//! memset: the speed of writing to memory and its caches.

use std::hint::black_box;

use super::{Benchmark, THREADS, operation};

/// Bytes set.
const BYTES: usize = 1 << 20;

pub const CASE: Benchmark = Benchmark {
    id: "memset",
    measures: "memset() of 1 MB",
    ladder: THREADS,
    prepare: operation!({
        let mut to = vec![0u8; BYTES];
        move || {
            to.fill(black_box(1));
            black_box(&mut to);
            Ok(())
        }
    }),
};
