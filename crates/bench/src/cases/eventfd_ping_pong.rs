//! eventfd-ping-pong: two wait for each other at eventfds.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::ping_pong::{self, Descriptors};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "eventfd-ping-pong",
    measures: "write() to an eventfd at which a partner waits, and back through another",
    ladder: THREADS,
    prepare: |request| ping_pong::prepare(request, || Ok(Descriptors::two(counter()?, counter()?))),
};

/// The same counter to read from and to write to.
fn counter() -> Result<(OwnedFd, OwnedFd), Errno> {
    let from = eventfd(0, EventfdFlags::CLOEXEC)?;
    let to = rustix::io::fcntl_dupfd_cloexec(&from, 0)?;
    Ok((from, to))
}
