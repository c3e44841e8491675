//! rwlock-write: one lock that all workers take for writing.

use std::sync::Arc;

use super::locks::{self, checked};
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "rwlock-write",
    measures: "pthread_rwlock_wrlock() and _unlock() of one lock for all workers",
    ladder: THREADS,
    prepare: |request| {
        let lock = locks::rwlock(request.kind)?;
        Ok(Box::new(Alone(move |_| {
            let lock = Arc::clone(&lock);
            Ok(Box::new(move || {
                // SAFETY: an initialised lock.
                checked(unsafe { libc::pthread_rwlock_wrlock(lock.get()) })?;
                // SAFETY: taken just now.
                checked(unsafe { libc::pthread_rwlock_unlock(lock.get()) })
            }) as _)
        })))
    },
};
