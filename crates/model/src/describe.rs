//! What accounts are called in a sentence.

use crate::{Account, Blocked};

impl Account {
    /// As a participle: `running in mmap`, `waiting to write mmap_lock`.
    pub fn describe(self) -> String {
        match self {
            Account::User => "running in user mode".to_owned(),
            Account::Syscall(call) => format!("running in {call}"),
            Account::Kernel => "running in the kernel".to_owned(),
            Account::Running => "running, in user mode or the kernel".to_owned(),
            Account::Spin => "spinning for a kernel spinlock".to_owned(),
            Account::HardIrq => "interrupted by hardware".to_owned(),
            Account::SoftIrq => "interrupted by softirqs".to_owned(),
            Account::Stolen => "stolen by the hypervisor".to_owned(),
            Account::RunnableWakeup => "in the run queue after waking".to_owned(),
            Account::RunnablePreempted => "in the run queue after being preempted".to_owned(),
            Account::Throttled => "throttled by its cgroup's CPU quota".to_owned(),
            Account::Blocked(kind) => kind.describe().to_owned(),
            Account::Unaccounted => "unaccounted".to_owned(),
        }
    }
}

impl Blocked {
    /// What a sleeping thread does, as a participle.
    pub fn describe(self) -> &'static str {
        match self {
            Blocked::Futex => "waiting for a futex",
            Blocked::MmapLockRead => "waiting to read mmap_lock",
            Blocked::MmapLockWrite => "waiting to write mmap_lock",
            Blocked::Rwsem => "waiting for a kernel rw-semaphore",
            Blocked::Mutex => "waiting for a kernel mutex",
            Blocked::RtMutex => "waiting for a kernel rt_mutex",
            Blocked::OtherLock => "waiting for a kernel lock",
            Blocked::FaultMinor => "asleep in a page fault without disk",
            Blocked::FaultMajor => "asleep in a page fault for the disk",
            Blocked::Disk => "waiting for the disk",
            Blocked::DirtyThrottle => "paused for writeback of dirty pages",
            Blocked::SocketReceive => "waiting for data on a socket",
            Blocked::SocketSend => "waiting for room in a socket's buffer",
            Blocked::SocketAccept => "waiting for a connection to accept",
            Blocked::SocketConnect => "waiting for a connection to be made",
            Blocked::Poll => "waiting in poll, select or epoll",
            Blocked::PipeRead => "waiting for data in a pipe",
            Blocked::PipeWrite => "waiting for room in a pipe or terminal",
            Blocked::TimerSleep => "asleep until a timer",
            Blocked::ChildWait => "waiting for a child",
            Blocked::FileLock => "waiting for a file lock",
            Blocked::Stopped => "stopped, frozen or traced",
            Blocked::Other => "asleep for something else",
            Blocked::Uninterruptible => "asleep uninterruptibly for something else",
        }
    }
}
