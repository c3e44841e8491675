//! tcp-loopback: bytes down through the stack and up again.

use super::{Benchmark, THREADS, loopback, through};

pub const CASE: Benchmark = Benchmark {
    id: "tcp-loopback",
    measures: "send() of 64 bytes by TCP over lo and recv() of them, in the same thread",
    ladder: THREADS,
    prepare: |request| through::prepare(request, loopback::tcp),
};
