//! What a sleeping thread waits for.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ParseAccountError;

/// What a sleeping thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Blocked {
    /// A futex: a user-space lock, condition or join.
    Futex,
    /// mmap_lock of an address space, to read it (page faults, /proc readers).
    MmapLockRead,
    /// mmap_lock of an address space, to change it (mmap, munmap, brk, mprotect ...).
    MmapLockWrite,
    /// Another kernel reader-writer semaphore.
    Rwsem,
    /// A kernel mutex.
    Mutex,
    /// A kernel rt_mutex (priority-inheritance futexes among them).
    RtMutex,
    /// A kernel lock of another kind (per-CPU rwsem, unknown flags).
    OtherLock,
    /// A page fault that slept without waiting for a disk.
    FaultMinor,
    /// A page fault that waited for a disk.
    FaultMajor,
    /// Disk, in a system call.
    Disk,
    /// Paused by the kernel because too much dirty page cache waits for writeback.
    DirtyThrottle,
    /// Data to arrive on a socket.
    SocketReceive,
    /// Room in a socket's send buffer.
    SocketSend,
    /// A connection to accept.
    SocketAccept,
    /// A connection to be established.
    SocketConnect,
    /// poll, select or epoll.
    Poll,
    /// Data in a pipe.
    PipeRead,
    /// Room in a pipe.
    PipeWrite,
    /// A timer the thread set itself: nanosleep, timerfd.
    TimerSleep,
    /// A child to change state.
    ChildWait,
    /// flock or fcntl record lock.
    FileLock,
    /// Stopped by a signal, frozen, or held by a tracer.
    Stopped,
    /// Something else, interruptibly (message queue, signal, terminal, completion ring ...).
    Other,
    /// Something else, uninterruptibly (state D).
    Uninterruptible,
}

impl Blocked {
    /// Every kind, in the order in which they are declared.
    pub const ALL: [Blocked; 24] = [
        Blocked::Futex,
        Blocked::MmapLockRead,
        Blocked::MmapLockWrite,
        Blocked::Rwsem,
        Blocked::Mutex,
        Blocked::RtMutex,
        Blocked::OtherLock,
        Blocked::FaultMinor,
        Blocked::FaultMajor,
        Blocked::Disk,
        Blocked::DirtyThrottle,
        Blocked::SocketReceive,
        Blocked::SocketSend,
        Blocked::SocketAccept,
        Blocked::SocketConnect,
        Blocked::Poll,
        Blocked::PipeRead,
        Blocked::PipeWrite,
        Blocked::TimerSleep,
        Blocked::ChildWait,
        Blocked::FileLock,
        Blocked::Stopped,
        Blocked::Other,
        Blocked::Uninterruptible,
    ];

    /// The part of the account's name after `blocked:`.
    pub fn name(self) -> &'static str {
        match self {
            Blocked::Futex => "futex",
            Blocked::MmapLockRead => "lock:mmap_lock:read",
            Blocked::MmapLockWrite => "lock:mmap_lock:write",
            Blocked::Rwsem => "lock:rwsem",
            Blocked::Mutex => "lock:mutex",
            Blocked::RtMutex => "lock:rt_mutex",
            Blocked::OtherLock => "lock:other",
            Blocked::FaultMinor => "page_fault:minor",
            Blocked::FaultMajor => "page_fault:major",
            Blocked::Disk => "disk",
            Blocked::DirtyThrottle => "dirty_throttle",
            Blocked::SocketReceive => "socket:receive",
            Blocked::SocketSend => "socket:send",
            Blocked::SocketAccept => "socket:accept",
            Blocked::SocketConnect => "socket:connect",
            Blocked::Poll => "poll",
            Blocked::PipeRead => "pipe:read",
            Blocked::PipeWrite => "pipe:write",
            Blocked::TimerSleep => "timer",
            Blocked::ChildWait => "child",
            Blocked::FileLock => "file_lock",
            Blocked::Stopped => "stopped",
            Blocked::Other => "other",
            Blocked::Uninterruptible => "uninterruptible",
        }
    }

    /// A kernel lock of any kind.
    pub fn is_kernel_lock(self) -> bool {
        matches!(
            self,
            Blocked::MmapLockRead
                | Blocked::MmapLockWrite
                | Blocked::Rwsem
                | Blocked::Mutex
                | Blocked::RtMutex
                | Blocked::OtherLock
        )
    }
}

impl FromStr for Blocked {
    type Err = ParseAccountError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let kind = Blocked::ALL.into_iter().find(|kind| kind.name() == s);
        kind.ok_or_else(|| ParseAccountError(s.to_owned()))
    }
}

impl From<Blocked> for String {
    fn from(kind: Blocked) -> String {
        kind.name().to_owned()
    }
}

impl TryFrom<String> for Blocked {
    type Error = ParseAccountError;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}
