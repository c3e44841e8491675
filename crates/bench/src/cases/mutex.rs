//! mutex: one that nobody else wants stays in user space.

use super::{Alone, Benchmark, THREADS, locks};

pub const CASE: Benchmark = Benchmark {
    id: "mutex",
    measures: "pthread_mutex_lock() and _unlock(), each worker a mutex of its own",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        Ok(Box::new(Alone(move |_| {
            let mutex = locks::mutex(kind, libc::PTHREAD_PRIO_NONE)?;
            Ok(Box::new(move || {
                mutex.lock()?;
                mutex.unlock()
            }) as _)
        })))
    },
};
