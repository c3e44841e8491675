//! unix-stream: bytes through a pair of AF_UNIX stream sockets.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Benchmark, THREADS, through};

pub const CASE: Benchmark = Benchmark {
    id: "unix-stream",
    measures: "send() of 64 bytes over an AF_UNIX stream and recv() of them, in the same thread",
    ladder: THREADS,
    prepare: |request| {
        through::prepare(request, || {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            Ok(socketpair(family, SocketType::STREAM, flags, None)?)
        })
    },
};
