//! pipe-ping-pong: two wait for each other at pipes.

use rustix::pipe::pipe;

use super::ping_pong::{self, Descriptors};
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "pipe-ping-pong",
    measures: "8 bytes to a partner that waits in read() of a pipe, and back through another",
    ladder: THREADS,
    prepare: |request| ping_pong::prepare(request, || Ok(Descriptors::two(pipe()?, pipe()?))),
};
