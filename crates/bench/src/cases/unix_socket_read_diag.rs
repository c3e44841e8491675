//! unix-socket-read-diag: is a new AF_UNIX socket held up by ss? (story 4)

use super::{Benchmark, Ladder, sockets};

pub const CASE: Benchmark = Benchmark {
    id: "unix-socket-read-diag",
    measures: "socket(AF_UNIX) and close() while others keep dumping sock_diag, as ss does",
    ladder: Ladder { shape: Some(sockets::held_up), ..sockets::READERS },
    prepare: |request| sockets::with_readers(request, sockets::read_diag),
};
