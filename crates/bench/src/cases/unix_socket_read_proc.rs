//! unix-socket-read-proc: is a new AF_UNIX socket held up by netstat? (story 4)

use super::{Benchmark, Ladder, sockets};

pub const CASE: Benchmark = Benchmark {
    id: "unix-socket-read-proc",
    measures: "socket(AF_UNIX) and close() while others keep reading /proc/net/unix",
    ladder: Ladder { shape: Some(sockets::held_up), ..sockets::READERS },
    prepare: |request| sockets::with_readers(request, sockets::read_proc),
};
