//! Pages: faults, reclaim, and what runs when memory is given back.

pub(crate) mod direct_compaction;
pub(crate) mod direct_reclaim;
pub(crate) mod file_major_fault;
pub(crate) mod first_touch;
pub(crate) mod fork_cow;
pub(crate) mod gc_cpu;
pub(crate) mod jvm_gc;
mod jvm_stops;
pub(crate) mod ksm_cow;
pub(crate) mod lazy_binding;
pub(crate) mod malloc_trim;
pub(crate) mod memcg_reclaim;
pub(crate) mod numa_balancing;
pub(crate) mod page_faults;
pub(crate) mod safepoint_late;
pub(crate) mod swap_in;
pub(crate) mod tlb_shootdown;
