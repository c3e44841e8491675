//! thread-create: the life of a thread that does nothing.

use rustix::io::Errno;

use super::{Case, THREADS, operation};

pub const CASE: Case = Case {
    id: "thread-create",
    measures: "pthread_create() of a thread that ends at once and pthread_join(), stack reused",
    ladder: THREADS,
    prepare: operation!(|| {
        let thread = std::thread::Builder::new()
            .spawn(|| {})
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
        thread.join().map_err(|_| Errno::IO)
    }),
};
