//! inotify-event: from a change to the event that reports it.

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::{pwrite, read};

use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "inotify-event",
    measures: "pwrite() of a byte to a watched file, and read() of the event that reports it",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", 1)?;
            let events = init(CreateFlags::CLOEXEC)?;
            add_watch(&events, own.path("file")?, WatchFlags::MODIFY)?;
            let mut buffer = [0u8; 64];
            Ok(move || {
                pwrite(&file, b"w", 0)?;
                read(&events, &mut buffer[..]).map(drop)
            })
        })
    },
};
