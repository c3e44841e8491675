//! The timeout of poll.

use rustix::io::Errno;

use super::{Served, Source, Ticker, last_error, whole_ms_until};

pub const SOURCE: Source = Source {
    id: "poll",
    says: "timeout of poll, in whole milliseconds, rounded up",
    usual_ns: super::USUAL_NS,
    make: |_| Ok(Box::new(Poll)),
};

struct Poll;

impl Ticker for Poll {
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno> {
        while let Some(ms) = whole_ms_until(intended_ns) {
            // SAFETY: no descriptors, so nothing is read or written.
            let found = unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
            if found == -1 && last_error() != Errno::INTR {
                return Err(last_error());
            }
        }
        Ok(Served::ONE)
    }
}
