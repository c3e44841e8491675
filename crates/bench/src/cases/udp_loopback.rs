//! udp-loopback: a datagram down through the stack and up again.

use super::{Benchmark, THREADS, loopback, through};

pub const CASE: Benchmark = Benchmark {
    id: "udp-loopback",
    measures: "send() of 64 bytes by UDP over lo and recv() of them, in the same thread",
    ladder: THREADS,
    prepare: |request| through::prepare(request, loopback::udp),
};
