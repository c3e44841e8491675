//! tcp-ping-pong: two wait for each other at TCP sockets.

use super::ping_pong::{self, Descriptors};
use super::{Benchmark, THREADS, loopback};

pub const CASE: Benchmark = Benchmark {
    id: "tcp-ping-pong",
    measures: "8 bytes by TCP over lo to a partner that waits for them, and back",
    ladder: THREADS,
    prepare: |request| {
        ping_pong::prepare(request, || {
            let (one, other) = loopback::tcp()?;
            Descriptors::sockets(one, other)
        })
    },
};
