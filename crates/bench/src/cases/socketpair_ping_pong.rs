//! socketpair-ping-pong: two wait for each other at AF_UNIX sockets.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::ping_pong::{self, Descriptors};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "socketpair-ping-pong",
    measures: "8 bytes over an AF_UNIX stream to a partner that waits for them, and back",
    ladder: THREADS,
    prepare: |request| {
        ping_pong::prepare(request, || {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            let (one, other) = socketpair(family, SocketType::STREAM, flags, None)?;
            Descriptors::sockets(one, other)
        })
    },
};
