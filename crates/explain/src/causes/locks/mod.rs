//! Threads that wait for each other.

pub(crate) mod barrier_straggler;
pub(crate) mod file_lock;
pub(crate) mod futex_convoy;
pub(crate) mod grace_period;
pub(crate) mod membarrier_global;
pub(crate) mod mm_reader;
pub(crate) mod mmap_lock;
pub(crate) mod rcu_sync_fdtable;
pub(crate) mod spin_lock;
pub(crate) mod thundering_herd;
