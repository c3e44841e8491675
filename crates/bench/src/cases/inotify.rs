//! inotify: a folder is watched, and no longer.

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};

use super::staged::staged_for_three;
use super::{Benchmark, THREADS, folder};

pub const CASE: Benchmark = Benchmark {
    id: "inotify",
    measures: "inotify_add_watch() and inotify_rm_watch() of a folder of the worker's own",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            let path = own.path(".")?;
            Ok(staged_for_three(
                init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
                // The end of a watch is an event.
                |events| folder::drain(events),
                move |events| {
                    let watch = add_watch(&*events, &path, WatchFlags::CREATE)?;
                    remove_watch(events, watch)
                },
            ))
        })
    },
};
