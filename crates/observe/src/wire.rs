//! What the numbers of bpf/wire.h mean.
//!
//! The enums and constants are written by build/header.rs from the header. Every match here names
//! all enumerators, so that a new one does not compile until its meaning is given.

#[allow(dead_code, reason = "what one side alone uses is in the header, too")]
mod header {
    include!(concat!(env!("OUT_DIR"), "/wire.rs"));
}

pub use header::*;
use std::collections::BTreeMap;

use model::{Blocked, Syscall, TableRead};

/// Room for one name in a mapping record.
pub const PATH_PART: usize = header::PATH_PART as usize;
/// Addresses of the kernel that are named at once.
pub const SYMBOLS_AT_ONCE: usize = header::SYMBOLS_AT_ONCE as usize;
const NO_CALL: u16 = header::NO_CALL as u16;

// The model counts in the same units.
const _: () = assert!(header::HIST_PRECISION == model::histogram::PRECISION_KERNEL as u64);
const _: () = assert!(header::RUNNER_SAMPLE_NS == model::RunnerSum::SAMPLED_EVERY_NS);
const _: () = assert!(header::SPIN_SAMPLE_NS == model::ConcurrentCall::SAMPLED_EVERY_NS);
const _: () = assert!(header::PRESENCE_PIECE_NS == model::Presence::PIECE_NS);

impl Loss {
    /// As shown.
    pub fn text(self) -> &'static str {
        match self {
            Loss::EventRing => "outliers (ring full)",
            Loss::RareRing => "rare records (ring full)",
            Loss::Thread => "threads not watched, or not from their start (no room)",
            Loss::Wait => "wait sums (map full)",
            Loss::Hold => "lock hold sums (map full)",
            Loss::Call => "system call sums (map full)",
            Loss::Request => "block requests (map full)",
            Loss::Negative => "clock steps backwards",
            Loss::NestedLock => "nested lock waits",
            Loss::Reader => "mmap_lock readers (slots full)",
            Loss::Switch => "wakeups and switches (hidden by the host)",
            Loss::Path => "code paths (map full)",
            Loss::CallError => "failed calls (map full)",
            Loss::Send => "blocked sends (map full)",
            Loss::Retry => "tries again (map full)",
            Loss::Presence => "presence of programs (map full)",
            Loss::Beside => "spinners' neighbours (map full)",
            Loss::Service => "ports and peers on their own (map full)",
            Loss::Connection => "connections (no room)",
            Loss::Histogram => model::Losses::VALUES,
            Loss::Sample => "threads and user stacks of samples (map full)",
            Loss::PageRead => "pages read into the page cache (map full)",
        }
    }
}

impl LockClass {
    /// As shown.
    pub fn text(self) -> &'static str {
        match self {
            LockClass::Unknown => "lock of unknown code",
            LockClass::MmapRead => "mmap_lock (read)",
            LockClass::MmapWrite => "mmap_lock (write)",
            LockClass::Spin => "spinlock",
        }
    }
}

/// The call of a record, if it names one.
pub fn call(number: u16) -> Option<Syscall> {
    (number != NO_CALL).then_some(Syscall(number))
}

/// `enum account`; unaccounted if there is no such number. On a CPU in a system call it is the
/// account of that call.
pub fn account(number: impl Into<u64>, call: Option<Syscall>) -> model::Account {
    let Some(account) = Account::of(number) else { return model::Account::Unaccounted };
    let blocked = model::Account::Blocked;
    match account {
        Account::Unaccounted => model::Account::Unaccounted,
        Account::User => model::Account::User,
        Account::Syscall => call.map_or(model::Account::Kernel, model::Account::Syscall),
        Account::Kernel => model::Account::Kernel,
        Account::Spin => model::Account::Spin,
        Account::Hardirq => model::Account::HardIrq,
        Account::Softirq => model::Account::SoftIrq,
        Account::Stolen => model::Account::Stolen,
        Account::RunnableWakeup => model::Account::RunnableWakeup,
        Account::RunnablePreempted => model::Account::RunnablePreempted,
        Account::Throttled => model::Account::Throttled,
        Account::Running => model::Account::Running,
        Account::Futex => blocked(Blocked::Futex),
        Account::MmapLockRead => blocked(Blocked::MmapLockRead),
        Account::MmapLockWrite => blocked(Blocked::MmapLockWrite),
        Account::Rwsem => blocked(Blocked::Rwsem),
        Account::Mutex => blocked(Blocked::Mutex),
        Account::RtMutex => blocked(Blocked::RtMutex),
        Account::OtherLock => blocked(Blocked::OtherLock),
        Account::FaultMinor => blocked(Blocked::FaultMinor),
        Account::FaultMajor => blocked(Blocked::FaultMajor),
        Account::Disk => blocked(Blocked::Disk),
        Account::DirtyThrottle => blocked(Blocked::DirtyThrottle),
        Account::SocketReceive => blocked(Blocked::SocketReceive),
        Account::SocketSend => blocked(Blocked::SocketSend),
        Account::SocketAccept => blocked(Blocked::SocketAccept),
        Account::SocketConnect => blocked(Blocked::SocketConnect),
        Account::Poll => blocked(Blocked::Poll),
        Account::PipeRead => blocked(Blocked::PipeRead),
        Account::PipeWrite => blocked(Blocked::PipeWrite),
        Account::Timer => blocked(Blocked::TimerSleep),
        Account::Child => blocked(Blocked::ChildWait),
        Account::FileLock => blocked(Blocked::FileLock),
        Account::Stopped => blocked(Blocked::Stopped),
        Account::Other => blocked(Blocked::Other),
        Account::Uninterruptible => blocked(Blocked::Uninterruptible),
    }
}

/// Nanoseconds by `enum chain_end`, without those that are 0.
pub fn chain_ends(ns: &[u64]) -> BTreeMap<model::ChainEnd, u64> {
    let ends = ChainEnd::ALL.into_iter().zip(ns);
    ends.filter(|(_, ns)| **ns > 0).map(|(end, ns)| (end.of_model(), *ns)).collect()
}

/// Who was at the end of a wait, and how: nobody if it is not known.
pub fn chain_end(end: u32, tid: u32) -> Option<(u32, model::ChainEnd)> {
    (tid != 0).then_some((tid, ChainEnd::of(end)?.of_model()))
}

impl ChainEnd {
    fn of_model(self) -> model::ChainEnd {
        match self {
            ChainEnd::Unknown => model::ChainEnd::Unknown,
            ChainEnd::Cpu => model::ChainEnd::Cpu,
            ChainEnd::RunQueue => model::ChainEnd::RunQueue,
            ChainEnd::Throttled => model::ChainEnd::Throttled,
            ChainEnd::Disk => model::ChainEnd::Disk,
            ChainEnd::Fault => model::ChainEnd::Fault,
            ChainEnd::Kernel => model::ChainEnd::Kernel,
            ChainEnd::Stopped => model::ChainEnd::Stopped,
            ChainEnd::Timer => model::ChainEnd::Timer,
            ChainEnd::Timeout => model::ChainEnd::Timeout,
            ChainEnd::Outside => model::ChainEnd::Outside,
            ChainEnd::Unwatched => model::ChainEnd::Unwatched,
            ChainEnd::Peer => model::ChainEnd::Peer,
            ChainEnd::Idle => model::ChainEnd::Idle,
        }
    }
}

/// `enum outlier_kind`.
pub fn outlier_kind(number: u32) -> Option<model::OutlierKind> {
    Some(match OutlierKind::of(number)? {
        OutlierKind::Syscall => model::OutlierKind::Syscall,
        OutlierKind::OffCpu => model::OutlierKind::OffCpu,
        OutlierKind::RunQueue => model::OutlierKind::RunQueue,
        OutlierKind::LockHold => model::OutlierKind::LockHold,
        OutlierKind::FirstCall => model::OutlierKind::FirstCall,
    })
}

/// `enum context`.
pub fn context(number: u16) -> model::Context {
    match Context::of(number) {
        Some(Context::Softirq) => model::Context::SoftIrq,
        Some(Context::Hardirq) => model::Context::HardIrq,
        Some(Context::Task) | None => model::Context::Task,
    }
}

/// `enum beside_kind`: what is read, with the names of a file of /proc and of its folder.
pub fn read_by(kind: u16, folder: &str, name: &str) -> TableRead {
    match BesideKind::of(kind) {
        Some(BesideKind::ProcFile) => match (folder, name) {
            ("/", "/") => TableRead::Proc("/proc".to_owned()),
            ("/", name) => TableRead::Proc(format!("/proc/{name}")),
            (folder, name) => TableRead::Proc(format!("{folder}/{name}")),
        },
        Some(BesideKind::SockDiag) => TableRead::SocketDiag,
        Some(BesideKind::Other) | None => TableRead::Unknown,
    }
}

/// `MAJOR:MINOR` of a device number of the kernel.
pub fn device_name(id: u64) -> String {
    format!("{}:{}", id >> 20, id & 0xfffff)
}

/// `enum vector`, and device interrupts.
pub fn hard_irq_name(id: u64) -> String {
    Vector::of(id).map_or_else(|| format!("irq{id}"), |vector| vector.name().to_owned())
}

/// An interrupt by `enum hist_kind` and its vector.
pub fn interrupt_name(kind: u32, id: u64) -> String {
    match HistKind::of(kind) {
        Some(HistKind::Softirq) => format!("softirq {}", softirq_name(id)),
        _ => hard_irq_name(id),
    }
}

/// Softirq vectors, in the kernel's order (include/linux/interrupt.h).
pub fn softirq_name(id: u64) -> String {
    const NAMES: [&str; 10] = [
        "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer",
        "rcu",
    ];
    NAMES.get(id as usize).map_or_else(|| format!("softirq{id}"), |name| (*name).to_owned())
}

impl CallKind {
    /// The calls of this kind, by name.
    fn calls(self) -> &'static [&'static str] {
        match self {
            CallKind::Other => &[],
            CallKind::Futex => &["futex", "futex_waitv", "futex_wait", "futex_requeue"],
            CallKind::Poll => &[
                "poll",
                "ppoll",
                "select",
                "pselect6",
                "epoll_wait",
                "epoll_pwait",
                "epoll_pwait2",
                "epoll_wait_old",
            ],
            CallKind::Timer => &["nanosleep", "clock_nanosleep"],
            CallKind::Child => &["wait4", "waitid", "vfork", "clone", "clone3"],
            CallKind::Accept => &["accept", "accept4"],
            CallKind::Connect => &["connect"],
            CallKind::Receive => &["recvfrom", "recvmsg", "recvmmsg"],
            CallKind::Send => &["sendto", "sendmsg", "sendmmsg"],
            CallKind::FileLock => &["flock"],
            CallKind::Semaphores => &["semop", "semtimedop"],
            CallKind::Messages => &["msgrcv"],
            CallKind::MessageSend => &["msgsnd"],
            CallKind::Signals => &["rt_sigtimedwait"],
            CallKind::Fcntl => &["fcntl"],
            CallKind::Read => &["read", "readv", "pread64", "preadv", "preadv2"],
            CallKind::Write => &["write", "writev", "pwrite64", "pwritev", "pwritev2"],
            CallKind::Disk => &["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"],
            CallKind::Yield => &["sched_yield"],
            CallKind::Completion => &["io_uring_enter", "io_getevents", "io_pgetevents"],
            CallKind::Path1 => &["open", "mkdir", "mknod"],
            CallKind::Path2 => {
                &["openat", "openat2", "mkdirat", "mknodat", "link", "symlink", "rename"]
            }
            CallKind::Path3 => &["symlinkat"],
            CallKind::Path4 => &["linkat", "renameat", "renameat2"],
            CallKind::SocketOption => &["getsockopt"],
        }
    }

    /// The kind of a call.
    pub fn of_call(call: Syscall) -> CallKind {
        let kind = CallKind::ALL.into_iter().find(|kind| call.is_one_of(kind.calls()));
        kind.unwrap_or(CallKind::Other)
    }
}

/// What a call waits for when it sleeps: `enum call_kind` by system call number.
pub fn call_kinds() -> [u8; CALLS_MAX as usize] {
    let mut kinds = [CallKind::Other as u8; CALLS_MAX as usize];
    for kind in CallKind::ALL {
        for Syscall(number) in kind.calls().iter().filter_map(|call| Syscall::named(call)) {
            if let Some(entry) = kinds.get_mut(usize::from(number)) {
                *entry = kind as u8;
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_account_of_the_header_has_its_own_in_the_model() {
        let accounts = Account::ALL.map(|account| super::account(account as u64, None));
        let different: BTreeSet<_> = accounts.iter().collect();
        // A system call without its number is time in the kernel.
        assert_eq!(different.len(), Account::ALL.len() - 1);
        assert_eq!(account(Account::ALL.len() as u64, None), model::Account::Unaccounted);
        let futex = Syscall::named("futex").unwrap();
        assert_eq!(account(Account::Syscall as u64, Some(futex)), model::Account::Syscall(futex));
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!((RecordType::Thread as u64, RecordType::Words as u64), (1, 6));
        assert_eq!((Vector::IrqWork as u64, NO_CALL), (0x1_0004, 0xffff));
        assert_eq!(hard_irq_name(0x1_0003), "call_function_single");
        assert_eq!(hard_irq_name(24), "irq24");
        assert_eq!(EventKind::of(EventKind::ALL.len() as u64), None);
    }

    #[test]
    fn each_call_has_one_kind() {
        let kinds = call_kinds();
        let fsync = Syscall::named("fsync").unwrap();
        assert_eq!(kinds[usize::from(fsync.0)], CallKind::Disk as u8);
        assert_eq!(CallKind::of_call(fsync), CallKind::Disk);
        let named: usize = CallKind::ALL.iter().map(|kind| kind.calls().len()).sum();
        let known = CallKind::ALL.iter().flat_map(|kind| kind.calls());
        assert_eq!(known.collect::<BTreeSet<_>>().len(), named);
    }
}
