//! brk: moves the end of the heap. A process has one heap, which the allocator moves too, so
//! two threads of a process cannot measure it at the same time.

use model::WorkerKind;
use rustix::io::Errno;

use super::{Alone, Benchmark, PROCESSES};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "brk",
    measures: "sbrk() of a page up and down again",
    ladder: PROCESSES,
    prepare: |request| {
        if request.kind == WorkerKind::Threads {
            let why = "a process has one heap, which its allocator moves as well: give --processes";
            return Err(Error::Refused(why.to_owned()));
        }
        Ok(Box::new(Alone(|_| {
            let page = rustix::param::page_size() as isize;
            Ok(Box::new(move || grow(page).and_then(|()| grow(-page))) as _)
        })))
    },
};

fn grow(bytes: isize) -> Result<(), Errno> {
    // SAFETY: this process has no other thread that could use the heap meanwhile, and takes away
    // only the page that it added.
    let was = unsafe { libc::sbrk(bytes) };
    if was as isize == -1 { Err(Errno::NOMEM) } else { Ok(()) }
}
