//! futex-hash: the kernel's table of futexes, without any sleep.

use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex;

use super::{Alone, Benchmark, THREADS};

/// As many as a worker of `perf bench futex hash` uses.
const WORDS: usize = 1024;

pub const CASE: Benchmark = Benchmark {
    id: "futex-hash",
    measures: "futex(FUTEX_WAIT, private) on the next of 1024 words, none as expected: no sleep",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let words: Vec<AtomicU32> = (0..WORDS).map(|_| AtomicU32::new(0)).collect();
            let mut next = 0;
            Ok(Box::new(move || {
                next = (next + 1) % WORDS;
                match futex::wait(&words[next], futex::Flags::PRIVATE, 1, None) {
                    Err(Errno::AGAIN) => Ok(()),
                    other => other,
                }
            }) as _)
        })))
    },
};
