//! io-uring-nop: the way through a ring and back, one operation at a time.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, io_uring_cqe,
    io_uring_enter, io_uring_params, io_uring_setup, io_uring_sqe,
};
use rustix::mm::MapFlags;

use super::mapping::Mapping;
use super::{Alone, Benchmark, THREADS};
use crate::{Error, Work};

pub const CASE: Benchmark = Benchmark {
    id: "io-uring-nop",
    measures: "io_uring_enter() that submits IORING_OP_NOP and takes its completion",
    ladder: THREADS,
    prepare: |_| {
        if let Err(errno @ (Errno::NOSYS | Errno::PERM | Errno::ACCESS)) = Ring::new() {
            let why =
                format!("io_uring is not allowed here ({errno}): see kernel.io_uring_disabled");
            return Err(Error::Refused(why));
        }
        Ok(Box::new(Alone(|_| Ok(Box::new(Ring::new()?) as _))))
    },
};

/// A ring with one place. Its only entry stays as the kernel made it: all zero, which is a NOP.
struct Ring {
    file: OwnedFd,
    rings: Mapping,
    /// Held so that the kernel finds it mapped for as long as the ring is.
    _entries: Mapping,
    params: io_uring_params,
}

impl Ring {
    fn new() -> Result<Ring, Errno> {
        let mut params = io_uring_params::default();
        // SAFETY: the parameters are plain, no descriptor among them is used.
        let file = unsafe { io_uring_setup(1, &mut params)? };
        // Since Linux 5.4: one mapping holds the ring of submissions and that of completions.
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP) {
            return Err(Errno::NOSYS);
        }
        let submissions = params.sq_off.array as usize + params.sq_entries as usize * 4;
        let completions =
            params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let bytes = submissions.max(completions);
        let rings = Mapping::of_file_at(&file, IORING_OFF_SQ_RING, bytes, MapFlags::SHARED)?;
        let bytes = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let entries = Mapping::of_file_at(&file, IORING_OFF_SQES, bytes, MapFlags::SHARED)?;
        Ok(Ring { file, rings, _entries: entries, params })
    }

    fn counter(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel says that a counter of 4 bytes, aligned, is there in the mapping.
        unsafe { &*self.rings.start.add(offset as usize).cast::<AtomicU32>() }
    }
}

impl Work for Ring {
    fn operate(&mut self) -> Result<(), Errno> {
        self.counter(self.params.sq_off.tail).fetch_add(1, Ordering::Release);
        // SAFETY: what is submitted is a NOP, which touches no memory.
        unsafe { io_uring_enter(&self.file, 1, 1, IoringEnterFlags::GETEVENTS)? };
        let (head, tail) = (self.params.cq_off.head, self.params.cq_off.tail);
        let done = self.counter(tail).load(Ordering::Acquire);
        if self.counter(head).swap(done, Ordering::Release) == done {
            // Nothing was completed.
            return Err(Errno::IO);
        }
        Ok(())
    }
}
