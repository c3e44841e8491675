//! setitimer: the timer of the process, one for all its threads.

use rustix::io::Errno;

use super::{Alone, Benchmark, THREADS, last_error};
use crate::Work;

pub const CASE: Benchmark = Benchmark {
    id: "setitimer",
    measures: "setitimer(ITIMER_REAL) to an hour from now, set so before; one for all threads",
    ladder: THREADS,
    prepare: |_| Ok(Box::new(Alone(|_| Ok(Box::new(Alarm) as _)))),
};

/// Disarmed when dropped.
struct Alarm;

fn set(seconds: libc::time_t) -> Result<(), Errno> {
    let after = |tv_sec| libc::timeval { tv_sec, tv_usec: 0 };
    let time = libc::itimerval { it_interval: after(0), it_value: after(seconds) };
    // SAFETY: a valid time; the old one is not wanted.
    match unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const time, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

impl Work for Alarm {
    fn operate(&mut self) -> Result<(), Errno> {
        set(3600)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let _ = set(0);
    }
}
