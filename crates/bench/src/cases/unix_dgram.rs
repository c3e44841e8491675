//! unix-dgram: a datagram through a pair of AF_UNIX sockets.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Benchmark, THREADS, through};

pub const CASE: Benchmark = Benchmark {
    id: "unix-dgram",
    measures: "send() of 64 bytes as one AF_UNIX datagram and recv() of them, in the same thread",
    ladder: THREADS,
    prepare: |request| {
        through::prepare(request, || {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            Ok(socketpair(family, SocketType::DGRAM, flags, None)?)
        })
    },
};
