//! Files, disks and pipes.

pub(crate) mod blocked_log_pipe;
pub(crate) mod dirty_throttle;
pub(crate) mod disk_read;
pub(crate) mod disk_sync;
mod disk_waits;
pub(crate) mod fsync_journal;
pub(crate) mod mmap_file_write;
pub(crate) mod page_cache_evicted;
mod pipe_readers;
mod rereads;
mod socket_readers;
