//! sigaction: what to do with a signal, a table of the process.

use super::{Alone, Benchmark, THREADS, last_error};

pub const CASE: Benchmark = Benchmark {
    id: "sigaction",
    measures: "sigaction() that sets what happens with SIGUSR2 to what it is already",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            // SAFETY: zero is a valid value: an empty mask, no flags, the default action.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            let place = &raw mut action;
            // SAFETY: asks only, into a valid structure.
            if unsafe { libc::sigaction(libc::SIGUSR2, std::ptr::null(), place) } != 0 {
                return Err(last_error().into());
            }
            Ok(Box::new(move || {
                let same = &raw const action;
                // SAFETY: sets what was asked.
                match unsafe { libc::sigaction(libc::SIGUSR2, same, std::ptr::null_mut()) } {
                    0 => Ok(()),
                    _ => Err(last_error()),
                }
            }) as _)
        })))
    },
};
