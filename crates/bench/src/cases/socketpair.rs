//! socketpair: making and closing a pair of connected sockets.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "socketpair",
    measures: "socketpair(AF_UNIX, SOCK_STREAM) and close() of both",
    ladder: THREADS,
    prepare: operation!(|| {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        socketpair(family, SocketType::STREAM, flags, None).map(drop)
    }),
};
