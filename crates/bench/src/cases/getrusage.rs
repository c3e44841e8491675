//! getrusage: sums up all threads of the process, under a lock of it.

use rustix::io::Errno;

use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "getrusage",
    measures: "getrusage(RUSAGE_SELF): adds up what all threads of the process have used",
    ladder: THREADS,
    prepare: operation!(|| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: `usage` is valid for writing and of the right type.
        match unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(Errno::INVAL),
        }
    }),
};
