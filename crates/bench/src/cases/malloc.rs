//! malloc: the C library's allocator, which does not ask the kernel for so little.

use std::hint::black_box;

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "malloc",
    measures: "malloc() and free() of 1 kB",
    ladder: THREADS,
    prepare: operation!(|| {
        // SAFETY: what was allocated is freed once; free() takes a null pointer, too.
        unsafe { libc::free(black_box(libc::malloc(black_box(1024)))) };
        Ok(())
    }),
};
