//! thread-create: the life of a thread that does nothing.

use std::ptr::{null, null_mut};

use rustix::io::Errno;

use super::locks::checked;
use super::{Benchmark, THREADS, operation};

pub const CASE: Benchmark = Benchmark {
    id: "thread-create",
    measures: "pthread_create() of a thread that ends at once and pthread_join(), stack reused",
    ladder: THREADS,
    // Not by the standard library, whose threads look up their stack and map another first.
    prepare: operation!(create_and_join),
};

extern "C" fn nothing(argument: *mut libc::c_void) -> *mut libc::c_void {
    argument
}

fn create_and_join() -> Result<(), Errno> {
    let mut thread = 0;
    // SAFETY: a valid place; the function takes any argument.
    checked(unsafe { libc::pthread_create(&raw mut thread, null(), nothing, null_mut()) })?;
    // SAFETY: made just now; what it returns is not wanted.
    checked(unsafe { libc::pthread_join(thread, null_mut()) })
}
