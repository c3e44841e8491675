//! write-null: the way into write() and nothing else.

use rustix::fs::{Mode, OFlags, open};

use super::folder::{self, BLOCK};
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "write-null",
    measures: "write() of 4 kB to /dev/null",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let null = open(c"/dev/null", OFlags::WRONLY, Mode::empty())?;
            let block = vec![b'w'; BLOCK];
            Ok(Box::new(move || rustix::io::write(&null, &block).and_then(folder::whole)) as _)
        })))
    },
};
