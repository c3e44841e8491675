//! posix-sem-post-wait: a semaphore that nobody else wants stays in user space.

use rustix::io::Errno;

use super::locks::Lock;
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "posix-sem-post-wait",
    measures: "sem_post() and sem_wait(), each worker a semaphore of its own: no sleep",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            // SAFETY: a valid address, nobody else's yet.
            let semaphore = Lock::new(|place| unsafe { libc::sem_init(place, 0, 0) })?;
            Ok(Box::new(move || {
                // SAFETY: an initialised semaphore.
                match unsafe { libc::sem_post(semaphore.get()) | libc::sem_wait(semaphore.get()) } {
                    0 => Ok(()),
                    _ => Err(Errno::INVAL),
                }
            }) as _)
        })))
    },
};
