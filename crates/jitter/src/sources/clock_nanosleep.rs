//! Sleeping until a moment.

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use super::{Served, Source, Ticker};

pub const SOURCE: Source = Source {
    id: "clock_nanosleep",
    says: "clock_nanosleep until an absolute time",
    usual_ns: super::USUAL_NS,
    make: |_| Ok(Box::new(Sleep)),
};

struct Sleep;

impl Ticker for Sleep {
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno> {
        loop {
            match absolute_sleep(intended_ns) {
                Err(Errno::INTR) => {}
                other => return other.map(|()| Served::ONE),
            }
        }
    }
}

/// Sleeps until a moment of CLOCK_MONOTONIC.
pub(crate) fn absolute_sleep(until_ns: u64) -> Result<(), Errno> {
    let until = Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as i64,
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &until)
}
