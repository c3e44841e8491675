//! udp-ping-pong: two wait for each other at UDP sockets.

use super::ping_pong::{self, Descriptors};
use super::{Benchmark, THREADS, loopback};

pub const CASE: Benchmark = Benchmark {
    id: "udp-ping-pong",
    measures: "8 bytes by UDP over lo to a partner that waits for them, and back",
    ladder: THREADS,
    prepare: |request| {
        ping_pong::prepare(request, || {
            let (one, other) = loopback::udp()?;
            Descriptors::sockets(one, other)
        })
    },
};
