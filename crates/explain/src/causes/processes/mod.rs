//! Processes that begin, end, stop, and share System V objects.

pub(crate) mod core_dump;
pub(crate) mod huge_exit;
pub(crate) mod huge_fork;
pub(crate) mod ipc_tables;
pub(crate) mod many_thread_vfork;
pub(crate) mod proc_scan_vs_fork;
pub(crate) mod shm_attach;
pub(crate) mod stopped_or_traced;
pub(crate) mod sysv_sem;
