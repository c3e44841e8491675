//! eventfd: a counter in the kernel.

use rustix::event::{EventfdFlags, eventfd};

use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "eventfd",
    measures: "write() to an eventfd and read() of it, in the same thread",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let counter = eventfd(0, EventfdFlags::CLOEXEC)?;
            Ok(Box::new(move || {
                rustix::io::write(&counter, &1u64.to_ne_bytes())?;
                rustix::io::read(&counter, &mut [0; 8]).map(drop)
            }) as _)
        })))
    },
};
