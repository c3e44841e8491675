//! Memory for the cases that need some.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::Work;

/// A mapping of the worker's own, unmapped when dropped.
pub struct Mapping {
    pub start: *mut u8,
    pub bytes: usize,
}

impl Mapping {
    /// Zeroed memory in small pages: where a huge one would do, no case would measure what it says.
    pub fn anonymous(bytes: usize, protection: ProtFlags) -> Result<Mapping, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)? };
        let mapping = Mapping { start: start.cast(), bytes };
        match mapping.advise(Advice::LinuxNoHugepage) {
            // A kernel that knows no huge pages.
            Ok(()) | Err(Errno::INVAL) => Ok(mapping),
            Err(errno) => Err(errno),
        }
    }

    /// The first bytes of a file, to read and write.
    pub fn of_file(file: impl AsFd, bytes: usize, flags: MapFlags) -> Result<Mapping, Errno> {
        Mapping::of_file_at(file, 0, bytes, flags)
    }

    /// Bytes of a file from `offset`, to read and write.
    pub fn of_file_at(
        file: impl AsFd,
        offset: u64,
        bytes: usize,
        flags: MapFlags,
    ) -> Result<Mapping, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, offset)? };
        Ok(Mapping { start: start.cast(), bytes })
    }

    /// Calls madvise() for all of it.
    pub fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the mapping is ours, nothing refers to it, and any content will do.
        unsafe { madvise(self.start.cast(), self.bytes, advice) }
    }

    /// Writes a byte of page `page`.
    pub fn write(&self, page: usize) {
        let at = page * rustix::param::page_size();
        assert!(at < self.bytes, "page {page} is beyond the mapping");
        // SAFETY: within the mapping, which its owner has made writable.
        unsafe { self.start.add(at).write_volatile(1) };
    }

    /// Reads a byte of page `page`.
    pub fn read(&self, page: usize) {
        let at = page * rustix::param::page_size();
        assert!(at < self.bytes, "page {page} is beyond the mapping");
        // SAFETY: within the mapping, which its owner has made readable.
        unsafe { self.start.add(at).read_volatile() };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// Pages touched one after the other: the first touch of each is a page fault.
pub struct FirstTouches {
    mapping: Mapping,
    pages: usize,
    next: usize,
}

impl FirstTouches {
    /// Of a mapping that is writable and has not been touched.
    pub fn of(mapping: Mapping) -> FirstTouches {
        let pages = mapping.bytes / rustix::param::page_size();
        FirstTouches { mapping, pages, next: 0 }
    }
}

impl Work for FirstTouches {
    #[inline]
    fn operate(&mut self) -> Result<(), Errno> {
        self.mapping.write(self.next);
        self.next += 1;
        Ok(())
    }

    /// Gives the pages back when there are not enough for one operation and two more.
    fn before(&mut self) -> Result<(), Errno> {
        if self.next + 3 > self.pages {
            self.mapping.advise(Advice::LinuxDontNeed)?;
            self.next = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::WorkerKind;

    use crate::cases::{Request, named};
    use crate::tidy::Traces;

    /// Minor and major page faults of this thread so far.
    fn faults() -> (i64, i64) {
        // SAFETY: zero is a value of this structure of integers, which getrusage fills.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            (usage.ru_minflt, usage.ru_majflt)
        }
    }

    #[test]
    fn an_operation_of_a_page_fault_case_is_one_page_fault() {
        // More than there are pages in any of the mappings.
        const OPERATIONS: i64 = 2_000;
        let traces = Traces::begin().unwrap();
        let (kind, population) = (WorkerKind::Threads, 0);
        let request = Request { workers: 1, kind, population, traces: &traces };
        for (id, major) in [
            ("page-fault-minor", false),
            ("page-fault-copy", false),
            ("page-fault-shared", false),
            ("page-fault-major", true),
        ] {
            let prepared = match (named(id).unwrap().prepare)(&request) {
                Err(crate::Error::Refused(why)) => {
                    println!("skipped: {id}: {why}");
                    continue;
                }
                prepared => prepared.unwrap(),
            };
            let mut work = prepared.worker(0).unwrap();
            let mut seen = 0;
            for _ in 0..OPERATIONS {
                work.before().unwrap();
                let before = faults();
                work.operate().unwrap();
                let after = faults();
                seen += if major { after.1 - before.1 } else { after.0 - before.0 };
                work.after().unwrap();
            }
            // The stack's or the library's own.
            let most = OPERATIONS + 10;
            assert!((OPERATIONS..most).contains(&seen), "{id}: {seen} page faults");
        }
    }
}
