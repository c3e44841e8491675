//! signal-self: the way into a handler and back.

use super::signals::Handler;
use super::{Alone, Benchmark, THREADS, last_error};

pub const CASE: Benchmark = Benchmark {
    id: "signal-self",
    measures: "raise() of a signal whose handler does nothing: send, deliver, return from it",
    ladder: THREADS,
    prepare: |_| {
        // Worker processes inherit it; it stays as long as what is prepared.
        let handler = Handler::install(libc::SIGUSR1)?;
        Ok(Box::new(Alone(move |_| {
            let _installed = &handler;
            // SAFETY: goes to this thread alone, where it is caught.
            Ok(Box::new(|| match unsafe { libc::raise(libc::SIGUSR1) } {
                0 => Ok(()),
                _ => Err(last_error()),
            }) as _)
        })))
    },
};
