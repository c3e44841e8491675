//! No timer at all: a loop that never sleeps is late only if something takes its CPU.

use rustix::io::Errno;

use super::{Served, Source, Ticker};

pub const SOURCE: Source = Source {
    id: "spin",
    says: "busy loop until the time has come: hiccups of the CPU",
    usual_ns: 100_000,
    make: |_| Ok(Box::new(Spin)),
};

struct Spin;

impl Ticker for Spin {
    fn wait(&mut self, intended_ns: u64) -> Result<Served, Errno> {
        while clock::monotonic_ns() < intended_ns {}
        Ok(Served::ONE)
    }
}
