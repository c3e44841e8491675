//! sigprocmask: holding a signal off and letting it in again.

use super::{Alone, Benchmark, THREADS, last_error, signals};

pub const CASE: Benchmark = Benchmark {
    id: "sigprocmask",
    measures: "pthread_sigmask() that blocks SIGUSR1 and one that lets it in again",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let set = signals::set(&[libc::SIGUSR1]);
            Ok(Box::new(move || {
                let (one, none) = (&raw const set, std::ptr::null_mut());
                // SAFETY: a valid set; the old one is not wanted.
                let failed = unsafe {
                    libc::pthread_sigmask(libc::SIG_BLOCK, one, none)
                        | libc::pthread_sigmask(libc::SIG_UNBLOCK, one, none)
                };
                if failed == 0 { Ok(()) } else { Err(last_error()) }
            }) as _)
        })))
    },
};
