//! The cases: one file each, named after its id, listed in [`ALL`].

mod access;
mod append;
mod barrier;
mod brk;
mod chdir;
mod clock_boottime;
mod clock_monotonic;
mod clock_monotonic_coarse;
mod clock_monotonic_raw;
mod clock_process_cputime;
mod clock_read;
mod clock_realtime;
mod clock_realtime_coarse;
mod clock_tai;
mod clock_thread_cputime;
mod condvar;
mod context_switch;
mod create;
mod create_unlink_same;
mod dlopen;
mod dup;
mod empty;
mod epoll;
mod epoll_ctl;
mod eventfd;
mod eventfd_ping_pong;
mod fallocate;
mod fcntl_flags;
mod fcntl_lock;
mod fcntl_lock_same;
mod fd_table;
mod fd_table_threads;
mod fdatasync;
mod flock;
mod flock_same;
mod folder;
mod fork_exit;
mod fork_population;
mod fstat;
mod fsync;
mod futex_hash;
mod futex_turns;
mod futex_wake;
mod futex_wake_wait;
mod futex_wake_wait_shared;
mod getcwd;
mod getdents;
mod getpgid;
mod getpid;
mod getppid;
mod getrandom;
mod getrusage;
mod getuid;
mod growing_table;
mod inotify;
mod inotify_event;
mod io_uring_nop;
mod isatty;
mod lazy;
mod link_unlink;
mod locks;
mod loopback;
mod lseek;
mod lseek_same;
mod madvise_dontneed;
mod malloc;
mod mapping;
mod membarrier;
mod memcpy;
mod memfd;
mod memory_latency;
mod memset;
mod mkdir_rmdir;
mod mmap_anon;
mod mmap_file;
mod mmap_touch;
mod mprotect;
mod msync;
mod munmap;
mod mutex;
mod mutex_contended;
mod mutex_pi_contended;
mod nanosleep;
mod open_close;
mod open_close_same;
mod page_fault_copy;
mod page_fault_major;
mod page_fault_minor;
mod page_fault_shared;
mod ping_pong;
mod pipe;
mod pipe_ping_pong;
mod plt_first;
mod plt_later;
mod plt_now;
mod poll;
mod posix_mq;
mod posix_sem_post_wait;
mod posix_spawn;
mod pread;
mod pread_file;
mod pread_same;
mod proc_scan;
mod proc_scan_many;
mod pwrite;
mod pwrite_same;
mod read;
mod read_zero;
mod readlink;
mod readv;
mod realpath;
mod rename;
mod rwlock_read;
mod rwlock_write;
mod sched_affinity;
mod sched_getaffinity;
mod sched_yield;
mod select;
mod sem_op;
mod sem_posix;
mod sem_sysv;
mod sem_sysv_population;
mod sendfile;
mod setitimer;
mod shape;
mod shared;
mod shm_attach;
mod shm_create;
mod sigaction;
mod signal_ping_pong;
mod signal_self;
mod signals;
mod sigprocmask;
mod socket_tcp;
mod socketpair;
mod socketpair_ping_pong;
mod sockets;
mod splice;
mod staged;
mod stat;
mod stat_same;
mod symlink_unlink;
mod sysv;
mod sysv_msg;
mod tasks;
mod tcp_connect;
mod tcp_loopback;
mod tcp_ping_pong;
mod thread_create;
mod thread_create_population;
mod through;
mod timer_create;
mod timerfd_settime;
mod truncate;
mod udp_loopback;
mod udp_multicast;
mod udp_ping_pong;
mod unix_dgram;
mod unix_socket;
mod unix_socket_bound;
mod unix_socket_read_diag;
mod unix_socket_read_proc;
mod unix_stream;
mod unlink;
mod watched;
mod write;
mod write_null;
mod writev;

pub use crate::benchmark::{
    Alone, Benchmark, Ladder, PROCESSES, Population, Prepared, Request, THREADS,
};

/// Prepares a case of one repeated operation that needs nothing.
macro_rules! operation {
    ($operation:expr) => {
        |_| Ok(Box::new($crate::cases::Alone(|_| Ok(Box::new($operation) as _))))
    };
}
use operation;

/// Every case.
#[rustfmt::skip]
pub const ALL: &[&Benchmark] = &[
    &access::CASE,
    &append::CASE,
    &barrier::CASE,
    &brk::CASE,
    &chdir::CASE,
    &clock_boottime::CASE,
    &clock_monotonic::CASE,
    &clock_monotonic_coarse::CASE,
    &clock_monotonic_raw::CASE,
    &clock_process_cputime::CASE,
    &clock_realtime::CASE,
    &clock_realtime_coarse::CASE,
    &clock_tai::CASE,
    &clock_thread_cputime::CASE,
    &condvar::CASE,
    &context_switch::CASE,
    &create::CASE,
    &create_unlink_same::CASE,
    &dlopen::CASE,
    &dup::CASE,
    &epoll::CASE,
    &epoll_ctl::CASE,
    &eventfd::CASE,
    &eventfd_ping_pong::CASE,
    &fallocate::CASE,
    &fcntl_flags::CASE,
    &fcntl_lock::CASE,
    &fcntl_lock_same::CASE,
    &fd_table::CASE,
    &fd_table_threads::CASE,
    &fdatasync::CASE,
    &flock::CASE,
    &flock_same::CASE,
    &fork_exit::CASE,
    &fork_population::CASE,
    &fstat::CASE,
    &fsync::CASE,
    &futex_hash::CASE,
    &futex_wake::CASE,
    &futex_wake_wait::CASE,
    &futex_wake_wait_shared::CASE,
    &getcwd::CASE,
    &getdents::CASE,
    &getpgid::CASE,
    &getpid::CASE,
    &getppid::CASE,
    &getrandom::CASE,
    &getrusage::CASE,
    &getuid::CASE,
    &inotify::CASE,
    &inotify_event::CASE,
    &io_uring_nop::CASE,
    &isatty::CASE,
    &link_unlink::CASE,
    &lseek::CASE,
    &lseek_same::CASE,
    &madvise_dontneed::CASE,
    &malloc::CASE,
    &membarrier::CASE,
    &memcpy::CASE,
    &memfd::CASE,
    &memory_latency::CASE,
    &memset::CASE,
    &mkdir_rmdir::CASE,
    &mmap_anon::CASE,
    &mmap_file::CASE,
    &mmap_touch::CASE,
    &mprotect::CASE,
    &msync::CASE,
    &munmap::CASE,
    &mutex::CASE,
    &mutex_contended::CASE,
    &mutex_pi_contended::CASE,
    &nanosleep::CASE,
    &open_close::CASE,
    &open_close_same::CASE,
    &page_fault_copy::CASE,
    &page_fault_major::CASE,
    &page_fault_minor::CASE,
    &page_fault_shared::CASE,
    &pipe::CASE,
    &pipe_ping_pong::CASE,
    &plt_first::CASE,
    &plt_later::CASE,
    &plt_now::CASE,
    &poll::CASE,
    &posix_mq::CASE,
    &posix_sem_post_wait::CASE,
    &posix_spawn::CASE,
    &pread::CASE,
    &pread_file::CASE,
    &pread_same::CASE,
    &proc_scan::CASE,
    &proc_scan_many::CASE,
    &pwrite::CASE,
    &pwrite_same::CASE,
    &read::CASE,
    &read_zero::CASE,
    &readlink::CASE,
    &readv::CASE,
    &realpath::CASE,
    &rename::CASE,
    &rwlock_read::CASE,
    &rwlock_write::CASE,
    &sched_affinity::CASE,
    &sched_getaffinity::CASE,
    &sched_yield::CASE,
    &select::CASE,
    &sem_op::CASE,
    &sem_posix::CASE,
    &sem_sysv::CASE,
    &sem_sysv_population::CASE,
    &sendfile::CASE,
    &setitimer::CASE,
    &shm_attach::CASE,
    &shm_create::CASE,
    &sigaction::CASE,
    &signal_ping_pong::CASE,
    &signal_self::CASE,
    &sigprocmask::CASE,
    &socket_tcp::CASE,
    &socketpair::CASE,
    &socketpair_ping_pong::CASE,
    &splice::CASE,
    &stat::CASE,
    &stat_same::CASE,
    &symlink_unlink::CASE,
    &sysv_msg::CASE,
    &tcp_connect::CASE,
    &tcp_loopback::CASE,
    &tcp_ping_pong::CASE,
    &thread_create::CASE,
    &thread_create_population::CASE,
    &timer_create::CASE,
    &timerfd_settime::CASE,
    &truncate::CASE,
    &udp_loopback::CASE,
    &udp_multicast::CASE,
    &udp_ping_pong::CASE,
    &unix_dgram::CASE,
    &unix_socket::CASE,
    &unix_socket_bound::CASE,
    &unix_socket_read_diag::CASE,
    &unix_socket_read_proc::CASE,
    &unix_stream::CASE,
    &unlink::CASE,
    &write::CASE,
    &write_null::CASE,
    &writev::CASE,
];

/// Why the call of the C library failed that has just returned -1.
fn last_error() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

/// What clock and harness cost: a row of every run.
pub const EMPTY: &Benchmark = &empty::CASE;

/// The case of this name; without one, the names most like it.
///
/// # Errors
/// The nearest names, best first.
pub fn named(id: &str) -> Result<&'static Benchmark, Vec<&'static str>> {
    if let Some(case) = ALL.iter().find(|case| case.id == id) {
        return Ok(case);
    }
    let mut near: Vec<(f64, &'static str)> = ALL
        .iter()
        .map(|case| {
            (if case.id.contains(id) { 1.0 } else { strsim::jaro_winkler(case.id, id) }, case.id)
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    Err(near.into_iter().take(3).map(|(_, id)| id).collect())
}
