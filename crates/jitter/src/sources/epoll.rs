//! The timeout of epoll_wait.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::epoll::{CreateFlags, create};
use rustix::io::Errno;

use super::{Served, Source, Ticker, last_error, whole_ms_until};

pub const SOURCE: Source = Source {
    id: "epoll",
    says: "timeout of epoll_wait, in whole milliseconds, rounded up",
    usual_ns: super::USUAL_NS,
    make: |_| Ok(Box::new(Epoll(create(CreateFlags::CLOEXEC)?))),
};

struct Epoll(OwnedFd);

impl Ticker for Epoll {
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno> {
        while let Some(ms) = whole_ms_until(intended_ns) {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for the one event asked for, and the descriptor is ours.
            let found = unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut event, 1, ms) };
            match found {
                -1 if last_error() != Errno::INTR => return Err(last_error()),
                _ => {}
            }
        }
        Ok(Served::ONE)
    }
}
