//! pipe: a byte through a pipe that nobody else uses.

use rustix::pipe::pipe;

use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pipe",
    measures: "write() of one byte to a pipe and read() of it, in the same thread",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let (from, to) = pipe()?;
            Ok(Box::new(move || {
                rustix::io::write(&to, &[1])?;
                rustix::io::read(&from, &mut [0; 1]).map(drop)
            }) as _)
        })))
    },
};
