//! read-zero: the way into read() and the filling of a buffer, without a file system.

use rustix::fs::{Mode, OFlags, open};

use super::folder::{self, BLOCK};
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "read-zero",
    measures: "read() of 4 kB of /dev/zero",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let zero = open(c"/dev/zero", OFlags::RDONLY, Mode::empty())?;
            let mut buffer = vec![0u8; BLOCK];
            Ok(Box::new(move || rustix::io::read(&zero, &mut buffer[..]).and_then(folder::whole))
                as _)
        })))
    },
};
