//! timer-create: making and removing a POSIX timer.

use super::{Benchmark, THREADS, last_error, operation};

pub const CASE: Benchmark = Benchmark {
    id: "timer-create",
    measures: "timer_create(CLOCK_MONOTONIC), which is to send nothing, and timer_delete()",
    ladder: THREADS,
    prepare: operation!(|| {
        // SAFETY: zero is a value of this structure, and of the id of a timer.
        let (mut event, mut timer): (libc::sigevent, libc::timer_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        event.sigev_notify = libc::SIGEV_NONE;
        let (event, place) = (&raw mut event, &raw mut timer);
        // SAFETY: valid addresses.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, place) } != 0 {
            return Err(last_error());
        }
        // SAFETY: made just now.
        match unsafe { libc::timer_delete(timer) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }),
};
