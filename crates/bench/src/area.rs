//! Memory that the coordinator shares with its workers, be they threads or processes.
//!
//! One [`Cell`] per worker, each on cache lines of its own; a [`Gate`] that releases all at once
//! and keeps all until the last has stopped measuring. Only atomics with relaxed order on what one
//! side writes and the other reads after the gate.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Error;

/// Precision of the histograms.
pub const PRECISION: u8 = model::bench::PRECISION_BENCH;
/// Buckets of precision 7 reach 2^37 ns, over 2 minutes.
pub const BUCKETS: usize = (37 - 7) << 7;
/// The longest operations kept one by one.
pub const OUTLIERS: usize = 16;
/// Most bytes of the text of a worker's failure.
const FAILURE: usize = 200;

/// A histogram that one worker writes.
#[repr(C)]
pub struct SharedHistogram {
    buckets: [AtomicU32; BUCKETS],
    /// Sum, ns.
    pub sum: AtomicU64,
    /// Largest, ns.
    pub max: AtomicU64,
    /// `!min`, so that zero means none.
    inverse_min: AtomicU64,
}

impl SharedHistogram {
    /// Counts a value in ns.
    #[inline]
    pub fn record(&self, ns: u64) {
        let index = (model::Histogram::index_of(ns, PRECISION) as usize).min(BUCKETS - 1);
        // One writer: no read-modify-write instruction is needed.
        let bucket = &self.buckets[index];
        bucket.store(bucket.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        self.sum.store(self.sum.load(Ordering::Relaxed) + ns, Ordering::Relaxed);
        if ns > self.max.load(Ordering::Relaxed) {
            self.max.store(ns, Ordering::Relaxed);
        }
        if !ns > self.inverse_min.load(Ordering::Relaxed) {
            self.inverse_min.store(!ns, Ordering::Relaxed);
        }
    }

    /// A copy.
    pub fn read(&self) -> model::Histogram {
        let buckets = self.buckets.iter().enumerate();
        model::Histogram::from_parts(
            PRECISION,
            buckets.map(|(index, n)| (index as u32, u64::from(n.load(Ordering::Relaxed)))),
            self.sum.load(Ordering::Relaxed),
            !self.inverse_min.load(Ordering::Relaxed),
            self.max.load(Ordering::Relaxed),
        )
    }
}

/// What one worker reports. 128 bytes: two cache lines, because processors fetch them in pairs.
#[repr(C, align(128))]
pub struct Cell {
    /// Single operations.
    pub single: SharedHistogram,
    /// Two operations timed together.
    pub double: SharedHistogram,
    /// Operations, whether timed alone or in pairs.
    pub operations: AtomicU64,
    /// When its first operation began, CLOCK_MONOTONIC.
    pub began_ns: AtomicU64,
    /// When its last one ended.
    pub ended_ns: AtomicU64,
    /// CPU time of it in user mode and in the kernel, ns.
    pub user_ns: AtomicU64,
    /// In the kernel.
    pub system_ns: AtomicU64,
    /// Ready to run, but without a CPU; `u64::MAX` if that is not known.
    pub queued_ns: AtomicU64,
    /// The longest single operations: when (CLOCK_MONOTONIC) and how long, ns.
    pub outliers: [(AtomicU64, AtomicU64); OUTLIERS],
    /// Length of the failure's text, 0 for none.
    failure_length: AtomicU32,
    failure: [std::sync::atomic::AtomicU8; FAILURE],
}

impl Cell {
    /// Keeps an operation in place of the shortest one kept; returns how long the shortest is now.
    pub fn keep(&self, at_ns: u64, ns: u64) -> u64 {
        let length = |slot: usize| self.outliers[slot].1.load(Ordering::Relaxed);
        let shortest = || (0..OUTLIERS).min_by_key(|slot| length(*slot)).unwrap_or(0);
        let (at, kept) = &self.outliers[shortest()];
        if ns > kept.load(Ordering::Relaxed) {
            at.store(at_ns, Ordering::Relaxed);
            kept.store(ns, Ordering::Relaxed);
        }
        length(shortest())
    }

    /// Notes why the worker cannot go on.
    pub fn fail(&self, why: &str) {
        let bytes = &why.as_bytes()[..why.len().min(FAILURE)];
        for (slot, byte) in self.failure.iter().zip(bytes) {
            slot.store(*byte, Ordering::Relaxed);
        }
        self.failure_length.store(bytes.len() as u32, Ordering::Release);
    }

    /// Why it could not go on.
    pub fn failure(&self) -> Option<String> {
        let length = self.failure_length.load(Ordering::Acquire) as usize;
        let bytes: Vec<u8> =
            self.failure.iter().take(length).map(|b| b.load(Ordering::Relaxed)).collect();
        (length > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Where workers wait for each other.
#[repr(C, align(128))]
pub struct Gate {
    /// Workers that are ready.
    pub ready: AtomicU32,
    /// Set when all are.
    pub open: AtomicU32,
    /// Set to end the round early.
    pub stop: AtomicU32,
    /// Workers that have stopped measuring.
    pub done: AtomicU32,
}

/// The shared memory: unmapped when dropped.
pub struct Area {
    memory: *mut libc::c_void,
    bytes: usize,
    workers: usize,
}

// SAFETY: all of it is atomics; the pointers are valid as long as the area is.
unsafe impl Sync for Area {}
// SAFETY: as above.
unsafe impl Send for Area {}

impl Area {
    /// Zeroed memory for so many workers, touched, so that no page fault falls into a step.
    pub fn new(workers: usize) -> Result<Area, Error> {
        let bytes = size_of::<Gate>() + workers * size_of::<Cell>();
        // SAFETY: an anonymous mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::os("mapping memory for the results"));
        }
        Ok(Area { memory, bytes, workers })
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        // SAFETY: the mapping begins with it, is aligned to a page, and zero is a valid value.
        unsafe { &*self.memory.cast::<Gate>() }
    }

    /// All cells.
    pub fn cells(&self) -> &[Cell] {
        // SAFETY: they follow the gate, whose size is a multiple of their alignment; zero is a
        // valid value of every field.
        unsafe {
            let first = self.memory.cast::<u8>().add(size_of::<Gate>()).cast::<Cell>();
            std::slice::from_raw_parts(first, self.workers)
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping made in new(), which nobody refers to any more.
        unsafe { libc::munmap(self.memory, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_histogram_reads_back_as_it_was_recorded() {
        let area = Area::new(2).unwrap();
        let cell = &area.cells()[1];
        for ns in [0, 7, 300, 5_000_000_000] {
            cell.single.record(ns);
        }
        let read = cell.single.read();
        let mut expected = model::Histogram::new(PRECISION);
        [0, 7, 300, 5_000_000_000].iter().for_each(|ns| expected.record(*ns));
        assert_eq!(read, expected);
        assert_eq!(area.cells()[0].single.read().count(), 0);
    }

    #[test]
    fn the_longest_are_kept() {
        let area = Area::new(1).unwrap();
        let cell = &area.cells()[0];
        (0..100u64).for_each(|ns| {
            cell.keep(ns * 2, ns);
        });
        let mut kept: Vec<_> = cell.outliers.iter().map(|o| o.1.load(Ordering::Relaxed)).collect();
        kept.sort_unstable();
        assert_eq!(kept, (84..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_told_in_words() {
        let area = Area::new(1).unwrap();
        assert_eq!(area.cells()[0].failure(), None);
        area.cells()[0].fail("no semaphores left");
        assert_eq!(area.cells()[0].failure().as_deref(), Some("no semaphores left"));
    }
}
