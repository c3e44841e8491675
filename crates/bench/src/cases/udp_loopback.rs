//! udp-loopback: a datagram down through the stack and up again.

use super::{Case, THREADS, loopback, through};

pub const CASE: Case = Case {
    id: "udp-loopback",
    measures: "send() of 64 bytes by UDP over lo and recv() of them, in the same thread",
    ladder: THREADS,
    prepare: |request| through::prepare(request, loopback::udp),
};
