//! mutex-pi-contended: as mutex-contended, with priority inheritance: the kernel hands it on.

use std::sync::Arc;

use super::{Alone, Benchmark, THREADS, locks};

pub const CASE: Benchmark = Benchmark {
    id: "mutex-pi-contended",
    measures: "as mutex-contended, the mutex with priority inheritance (PTHREAD_PRIO_INHERIT)",
    ladder: THREADS,
    prepare: |request| {
        let mutex = locks::mutex(request.kind, libc::PTHREAD_PRIO_INHERIT)?;
        Ok(Box::new(Alone(move |_| {
            let mutex = Arc::clone(&mutex);
            Ok(Box::new(move || {
                mutex.lock()?;
                mutex.unlock()
            }) as _)
        })))
    },
};
