//! getrandom: by the system call, not by the vDSO that newer C libraries use.

use rustix::rand::GetRandomFlags;

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getrandom",
    measures: "getrandom() of 16 bytes",
    ladder: THREADS,
    prepare: operation!(|| {
        let mut random = [0u8; 16];
        rustix::rand::getrandom(&mut random[..], GetRandomFlags::empty()).map(drop)
    }),
};
