//! A timed wait for a condition that never comes.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::{Served, Source, Ticker};

pub const SOURCE: Source = Source {
    id: "condvar",
    says: "timed wait for a condition variable (a futex until an absolute time)",
    usual_ns: super::USUAL_NS,
    make: |_| Ok(Box::new(Condition::default())),
};

#[derive(Default)]
struct Condition {
    never: Condvar,
    lock: Mutex<()>,
}

impl Ticker for Condition {
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno> {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // It may also end without reason.
        while let Some(left) = intended_ns.checked_sub(clock::monotonic_ns()).filter(|ns| *ns > 0) {
            let waited = self.never.wait_timeout(guard, Duration::from_nanos(left));
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Served::ONE)
    }
}
