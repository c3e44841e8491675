//! sendfile: from a file into a socket.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "sendfile",
    measures: "sendfile() of 4 kB of a cached file into a Unix socket",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BLOCK)?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let sockets = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            Ok(staged_for_three(
                sockets,
                |(_, far)| folder::drain(far),
                move |(near, _)| {
                    let sent = rustix::fs::sendfile(near, &file, Some(&mut 0), BLOCK);
                    sent.and_then(folder::whole)
                },
            ))
        })
    },
};
