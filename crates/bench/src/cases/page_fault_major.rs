//! page-fault-major: a page of a file is touched that is not in memory any more.

use std::os::fd::OwnedFd;

use rustix::fs::{Advice as FileAdvice, fadvise, fdatasync};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};

use super::mapping::Mapping;
use super::{Benchmark, THREADS, folder};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "page-fault-major",
    measures: "touch of a mapped file page that must come from the disk (its cache was dropped)",
    ladder: THREADS,
    prepare: |request| {
        let tried = Dropped::new(&*folder::root(request)?);
        if matches!(tried.map(|mut page| page.before()), Ok(Err(NOT_DROPPED))) {
            let why = "the file system of $TMPDIR keeps its pages in memory (tmpfs does): set \
                       TMPDIR to a folder on a disk";
            return Err(Error::Refused(why.to_owned()));
        }
        folder::each(request, Dropped::new)
    },
};

/// What [`Dropped::before`] says if the page stays in memory.
const NOT_DROPPED: Errno = Errno::BUSY;
/// A page on its way to a list of the kernel's cannot be dropped at once.
const TRIES: u32 = 50;

/// A file of one page, mapped.
struct Dropped {
    file: OwnedFd,
    page: Mapping,
}

impl Dropped {
    fn new(own: &folder::Folder) -> Result<Dropped, Error> {
        let bytes = rustix::param::page_size();
        let file = own.file("file", bytes)?;
        // Only clean pages are dropped.
        fdatasync(&file)?;
        let page = Mapping::of_file(&file, bytes, MapFlags::PRIVATE)?;
        Ok(Dropped { file, page })
    }

    fn is_in_memory(&self) -> Result<bool, Errno> {
        let mut resident = 0u8;
        // SAFETY: a mapping of one page, and a valid place for the byte that describes it.
        match unsafe { libc::mincore(self.page.start.cast(), self.page.bytes, &raw mut resident) } {
            0 => Ok(resident & 1 == 1),
            _ => Err(Errno::INVAL),
        }
    }
}

impl Work for Dropped {
    fn operate(&mut self) -> Result<(), Errno> {
        self.page.read(0);
        Ok(())
    }

    fn before(&mut self) -> Result<(), Errno> {
        // Nor are mapped pages dropped.
        self.page.advise(Advice::LinuxDontNeed)?;
        for _ in 0..TRIES {
            fadvise(&self.file, 0, None, FileAdvice::DontNeed)?;
            if !self.is_in_memory()? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(NOT_DROPPED)
    }

    fn is_repeatable(&self) -> bool {
        false
    }
}
