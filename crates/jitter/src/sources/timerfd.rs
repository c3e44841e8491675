//! A periodic timer that is read as a file.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::{Beat, Served, Source, Ticker};

pub const SOURCE: Source = Source {
    id: "timerfd",
    says: "read of a periodic timerfd, which counts the ticks that have passed",
    usual_ns: super::USUAL_NS,
    make: |beat| Ok(Box::new(TimerFile::new(beat)?)),
};

struct TimerFile(OwnedFd);

impl TimerFile {
    fn new(beat: Beat) -> Result<TimerFile, Errno> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let times = Itimerspec {
            it_interval: timespec(beat.interval_ns),
            it_value: timespec(beat.first_ns),
        };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(TimerFile(timer))
    }
}

pub(super) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

impl Ticker for TimerFile {
    fn wait(&mut self, _: u64) -> Result<Served, Errno> {
        let mut count = [0; 8];
        loop {
            match rustix::io::read(&self.0, &mut count) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(Served::now(u64::from_ne_bytes(count))),
            }
        }
    }
}
