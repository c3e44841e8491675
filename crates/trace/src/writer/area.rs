//! The mapped file, seen as the structures of the layout.
//!
//! The addresses stay good until the process ends. When the tracer closes, and in the child of a
//! fork, private memory takes the place of the file at the same addresses: whoever still writes
//! there writes into nothing, and no hot call has to ask whether it may. The pages of that memory
//! come into being only when they are touched.

use std::ffi::c_void;
use std::fs::File;
use std::mem::{align_of, size_of};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rustix::mm::{self, MapFlags, ProtFlags};

use crate::layout::{Block, Flow, Header, Name, Plan, Record, Thread};

#[derive(Clone, Copy)]
pub(crate) struct Area {
    base: *mut u8,
    plan: Plan,
}

// SAFETY: the memory is never unmapped, and all access goes through atomics.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

/// What the child of a fork has to cover; null while there is no tracer.
static MAPPED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static MAPPED_BYTES: AtomicUsize = AtomicUsize::new(0);
static AT_FORK: Once = Once::new();

impl Area {
    /// Maps a file that has the length of the plan. All pages are brought in now, not at the first
    /// message.
    pub fn map(file: &File, plan: Plan) -> rustix::io::Result<Area> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mm::mmap(
                ptr::null_mut(),
                plan.length(),
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                file,
                0,
            )
        }?;
        MAPPED_BYTES.store(plan.length(), Ordering::Relaxed);
        MAPPED.store(base.cast(), Ordering::Release);
        AT_FORK.call_once(|| {
            // SAFETY: the handler makes one system call and touches atomics only. If there is no
            // memory to remember the handler, a later fork has none either.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        Ok(Area { base: base.cast(), plan })
    }

    /// Puts private memory in the place of the file.
    pub fn let_go(&self) {
        MAPPED.store(ptr::null_mut(), Ordering::Relaxed);
        cover(self.base, self.plan.length());
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn header(&self) -> &'static Header {
        &self.slice::<Header>(0, 1)[0]
    }

    pub fn names(&self) -> &'static [Name] {
        self.section(0)
    }

    pub fn flows(&self) -> &'static [Flow] {
        self.section(1)
    }

    pub fn threads(&self) -> &'static [Thread] {
        self.section(2)
    }

    /// The ring of recent messages of a thread.
    pub fn recent(&self, thread: usize) -> &'static [Record] {
        &self.section(3)[thread * self.plan.recent..][..self.plan.recent]
    }

    /// The ring of slow messages of a thread.
    pub fn slow(&self, thread: usize) -> &'static [Record] {
        &self.section(4)[thread * self.plan.slow..][..self.plan.slow]
    }

    pub fn blocks(&self) -> &'static [Block] {
        self.section(5)
    }

    fn section<T>(&self, index: usize) -> &'static [T] {
        let place = self.plan.places()[index];
        assert_eq!(size_of::<T>(), place.entry_bytes);
        self.slice(place.offset, place.entries)
    }

    fn slice<T>(&self, offset: usize, entries: usize) -> &'static [T] {
        assert!(offset + entries * size_of::<T>() <= self.plan.length());
        assert_eq!(offset % align_of::<T>(), 0);
        // SAFETY: inside the mapping, which begins at a page and lasts for ever; every T of the
        // layout is made of atomics, for which any bytes are a value.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).cast(), entries) }
    }
}

extern "C" fn in_child() {
    let base = MAPPED.swap(ptr::null_mut(), Ordering::Acquire);
    if !base.is_null() {
        cover(base, MAPPED_BYTES.load(Ordering::Relaxed));
    }
}

fn cover(base: *mut u8, bytes: usize) {
    let base = base.cast::<c_void>();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: exactly the mapping that `map` made; what reads there next reads zero or its own.
    // A refusal (no memory for the kernel's own tables) leaves the file mapped, which is safe too.
    let _ = unsafe { mm::mmap_anonymous(base, bytes, protection, flags) };
}
