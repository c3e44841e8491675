//! splice: a page of a file into a pipe, not copied.

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with};

use super::folder::{self, BLOCK};
use super::staged::staged_for_three;
use super::{Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "splice",
    measures: "splice() of 4 kB of a cached file into a pipe",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BLOCK)?;
            Ok(staged_for_three(
                pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?,
                |(read, _)| folder::drain(read),
                move |(_, write)| {
                    let flags = SpliceFlags::empty();
                    let moved =
                        rustix::pipe::splice(&file, Some(&mut 0), write, None, BLOCK, flags);
                    moved.and_then(folder::whole)
                },
            ))
        })
    },
};
