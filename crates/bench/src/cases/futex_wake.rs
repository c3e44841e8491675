//! futex-wake: what waking costs if nobody waits.

use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "futex-wake",
    measures: "futex(FUTEX_WAKE, private) of a word on which nobody waits",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            // On lines of its own: neighbours would be another case.
            let word = Box::new([const { AtomicU32::new(0) }; 32]);
            Ok(Box::new(move || futex::wake(&word[16], futex::Flags::PRIVATE, 1).map(drop)) as _)
        })))
    },
};
