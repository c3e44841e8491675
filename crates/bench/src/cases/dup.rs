//! dup: one more descriptor of an open file, in a table that all threads share.

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "dup",
    measures: "dup() and close() of a descriptor of a file of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 0)?;
            Ok(move || rustix::io::dup(&file).map(drop))
        })
    },
};
