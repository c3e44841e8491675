//! mutex-contended: one mutex that all workers want.

use std::sync::Arc;

use super::{Alone, Benchmark, THREADS, locks};

pub const CASE: Benchmark = Benchmark {
    id: "mutex-contended",
    measures: "pthread_mutex_lock() and _unlock() of one mutex for all workers",
    ladder: THREADS,
    prepare: |request| {
        let mutex = locks::mutex(request.kind, libc::PTHREAD_PRIO_NONE)?;
        Ok(Box::new(Alone(move |_| {
            let mutex = Arc::clone(&mutex);
            Ok(Box::new(move || {
                mutex.lock()?;
                mutex.unlock()
            }) as _)
        })))
    },
};
