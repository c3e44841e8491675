//! socket-tcp: making and closing a TCP socket.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "socket-tcp",
    measures: "socket(AF_INET, SOCK_STREAM) and close(), never connected",
    ladder: THREADS,
    prepare: operation!(|| {
        let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
        socket_with(family, SocketType::STREAM, flags, None).map(drop)
    }),
};
