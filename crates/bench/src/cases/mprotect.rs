//! mprotect: a page read-only and back; other CPUs that run the process must forget it.

use rustix::mm::{MprotectFlags, ProtFlags};

use super::mapping::Mapping;
use super::{Alone, Benchmark, THREADS};

pub const CASE: Benchmark = Benchmark {
    id: "mprotect",
    measures: "mprotect() of a touched page to read-only, and back to writable",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            let page = rustix::param::page_size();
            let writable = MprotectFlags::READ | MprotectFlags::WRITE;
            // The neighbours differ from it in either state: no mapping is split or merged.
            let memory = Mapping::anonymous(3 * page, ProtFlags::empty())?;
            let protect = move |memory: &Mapping, flags| {
                // SAFETY: the second page of a mapping of three that is ours.
                unsafe { rustix::mm::mprotect(memory.start.add(page).cast(), page, flags) }
            };
            protect(&memory, writable)?;
            memory.write(1);
            Ok(Box::new(move || {
                protect(&memory, MprotectFlags::READ)?;
                protect(&memory, writable)
            }) as _)
        })))
    },
};
