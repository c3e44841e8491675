//! The numbers of bpf/wire.h, and their model types.

use model::{Account, Blocked, Context, EventKind, OutlierKind, Syscall, TableRead};

/// `ACCT_SYSCALL`: on a CPU in the call that the record names.
pub const ACCOUNT_SYSCALL: u32 = 2;
/// No system call.
pub const NO_CALL: u16 = 0xffff;

pub const RECORD_THREAD: u32 = 1;
pub const RECORD_OUTLIER: u32 = 2;
pub const RECORD_STACK: u32 = 3;
pub const RECORD_EVENT: u32 = 4;
pub const RECORD_MAPPING: u32 = 5;
pub const RECORD_WORDS: u32 = 6;

pub const LOCK_CLASS_MMAP_READ: u64 = 1;
pub const LOCK_CLASS_MMAP_WRITE: u64 = 2;
pub const LOCK_CLASS_SPIN: u64 = 3;

/// `enum loss`, as shown.
pub const LOSSES: [&str; 17] = [
    "outliers (ring full)",
    "rare records (ring full)",
    "threads not watched (no memory)",
    "wait sums (map full)",
    "lock hold sums (map full)",
    "runner sums (map full)",
    "system call sums (map full)",
    "block requests (map full)",
    "clock steps backwards",
    "nested lock waits",
    "mmap_lock readers (slots full)",
    "wakeups and switches (not told)",
    "code paths (map full)",
    "failed calls (map full)",
    "blocked sends (map full)",
    "presence of programs (map full)",
    "spinners' neighbours (map full)",
];

/// `enum program`, as shown in the cost.
pub const PROGRAMS: [&str; 26] = [
    "sched_switch",
    "sched_waking",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sys_enter",
    "sys_exit",
    "contention_begin",
    "contention_end",
    "mmap_lock_start_locking",
    "mmap_lock_acquire_returned",
    "mmap_lock_released",
    "page_fault_user",
    "page_fault_kernel",
    "irq_handler",
    "softirq",
    "irq_vectors",
    "block_rq",
    "signal_generate",
    "reclaim_compaction",
    "writeback",
    "cpu_clock",
    "timers",
    "kfree_skb",
    "tcp_retransmit_skb",
];

/// `enum account`; a call is needed for ACCT_SYSCALL only.
pub fn account(number: u32, call: u16) -> Account {
    let blocked = |kind| Account::Blocked(kind);
    match number {
        1 => Account::User,
        ACCOUNT_SYSCALL if call == NO_CALL => Account::Kernel,
        ACCOUNT_SYSCALL => Account::Syscall(Syscall(call)),
        3 => Account::Kernel,
        4 => Account::Spin,
        5 => Account::HardIrq,
        6 => Account::SoftIrq,
        7 => Account::Stolen,
        8 => Account::RunnableWakeup,
        9 => Account::RunnablePreempted,
        10 => Account::Throttled,
        11 => Account::Running,
        12 => blocked(Blocked::Futex),
        13 => blocked(Blocked::MmapLockRead),
        14 => blocked(Blocked::MmapLockWrite),
        15 => blocked(Blocked::Rwsem),
        16 => blocked(Blocked::Mutex),
        17 => blocked(Blocked::RtMutex),
        18 => blocked(Blocked::OtherLock),
        19 => blocked(Blocked::FaultMinor),
        20 => blocked(Blocked::FaultMajor),
        21 => blocked(Blocked::Disk),
        22 => blocked(Blocked::DirtyThrottle),
        23 => blocked(Blocked::SocketReceive),
        24 => blocked(Blocked::SocketSend),
        25 => blocked(Blocked::SocketAccept),
        26 => blocked(Blocked::SocketConnect),
        27 => blocked(Blocked::Poll),
        28 => blocked(Blocked::PipeRead),
        29 => blocked(Blocked::PipeWrite),
        30 => blocked(Blocked::TimerSleep),
        31 => blocked(Blocked::ChildWait),
        32 => blocked(Blocked::FileLock),
        33 => blocked(Blocked::Stopped),
        34 => blocked(Blocked::Other),
        35 => blocked(Blocked::Uninterruptible),
        _ => Account::Unaccounted,
    }
}

/// `enum outlier_kind`.
pub fn outlier_kind(number: u32) -> OutlierKind {
    match number {
        0 => OutlierKind::Syscall,
        1 => OutlierKind::OffCpu,
        2 => OutlierKind::RunQueue,
        4 => OutlierKind::FirstCall,
        _ => OutlierKind::LockHold,
    }
}

/// `enum context`.
pub fn context(number: u16) -> Context {
    match number {
        1 => Context::SoftIrq,
        2 => Context::HardIrq,
        _ => Context::Task,
    }
}

/// `enum beside_kind`: what is read, with the names of a file of /proc and of its folder.
pub fn read_by(kind: u16, folder: &str, name: &str) -> TableRead {
    match kind {
        1 if folder == "/" && name == "/" => TableRead::Proc("/proc".to_owned()),
        1 if folder == "/" => TableRead::Proc(format!("/proc/{name}")),
        1 => TableRead::Proc(format!("{folder}/{name}")),
        2 => TableRead::SocketDiag,
        _ => TableRead::Unknown,
    }
}

/// `enum event_kind`.
pub fn event_kind(number: u32) -> Option<EventKind> {
    Some(match number {
        0 => EventKind::Exec,
        1 => EventKind::Fork,
        2 => EventKind::Exit,
        3 => EventKind::Signal,
        4 => EventKind::DirectReclaim,
        5 => EventKind::Compaction,
        6 => EventKind::DirtyThrottle,
        7 => EventKind::JournalCommit,
        8 => EventKind::BlockIo,
        9 => EventKind::HeldSend,
        _ => return None,
    })
}

/// `enum vector` and device interrupts.
pub fn hard_irq_name(id: u64) -> String {
    match id {
        0x10000 => "local_timer".into(),
        0x10001 => "reschedule".into(),
        0x10002 => "call_function".into(),
        0x10003 => "call_function_single".into(),
        0x10004 => "irq_work".into(),
        irq => format!("irq{irq}"),
    }
}

/// An interrupt by `enum hist_kind` and its vector.
pub fn interrupt_name(kind: u32, id: u64) -> String {
    const HIST_SOFTIRQ: u32 = 6;
    if kind == HIST_SOFTIRQ { format!("softirq {}", softirq_name(id)) } else { hard_irq_name(id) }
}

/// Softirq vectors, in the kernel's order (include/linux/interrupt.h).
pub fn softirq_name(id: u64) -> String {
    const NAMES: [&str; 10] = [
        "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer",
        "rcu",
    ];
    NAMES.get(id as usize).map_or_else(|| format!("softirq{id}"), |name| (*name).to_owned())
}

/// What a call waits for when it sleeps: `enum call_kind` by system call number.
pub fn call_kinds() -> [u8; 512] {
    const KINDS: [(u8, &[&str]); 14] = [
        (1, &["futex", "futex_waitv", "futex_wait", "futex_requeue"]),
        (
            2,
            &[
                "poll",
                "ppoll",
                "select",
                "pselect6",
                "epoll_wait",
                "epoll_pwait",
                "epoll_pwait2",
                "epoll_wait_old",
            ],
        ),
        (3, &["nanosleep", "clock_nanosleep"]),
        (4, &["wait4", "waitid", "vfork", "clone", "clone3"]),
        (5, &["accept", "accept4"]),
        (6, &["connect"]),
        (7, &["recvfrom", "recvmsg", "recvmmsg"]),
        (8, &["sendto", "sendmsg", "sendmmsg"]),
        (9, &["flock"]),
        (10, &["fcntl"]),
        (11, &["read", "readv", "pread64", "preadv", "preadv2"]),
        (12, &["write", "writev", "pwrite64", "pwritev", "pwritev2"]),
        (13, &["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"]),
        (14, &["sched_yield"]),
    ];
    let mut kinds = [0; 512];
    for (kind, calls) in KINDS {
        for call in calls {
            if let Some(Syscall(number)) = Syscall::named(call)
                && let Some(entry) = kinds.get_mut(usize::from(number))
            {
                *entry = kind;
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an enum of wire.h, by counting its names.
    fn enumerators(name: &str) -> Vec<String> {
        let header = include_str!("../bpf/wire.h");
        let body = header.split(&format!("enum {name} {{")).nth(1).unwrap();
        let body = body.split('}').next().unwrap();
        body.lines()
            .map(|line| line.split("/*").next().unwrap())
            .flat_map(|line| line.split(','))
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty() && item != "ACCT_BLOCKED")
            .map(|item| item.split(" =").next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn accounts_are_those_of_the_header() {
        let names = enumerators("account");
        let count = names.iter().position(|n| n == "ACCT_MAX").unwrap();
        assert_eq!(account(count as u32, 0), Account::Unaccounted);
        let mut seen = std::collections::BTreeSet::new();
        for (number, name) in names.iter().enumerate().take(count) {
            let account = account(number as u32, 0);
            assert!(seen.insert(account), "{name} maps to {account}, which another one has");
            let words = account.to_string().to_uppercase().replace("BLOCKED:", "");
            let tail = name.rsplit('_').next().unwrap();
            let renamed =
                ["ACCT_SYSCALL", "ACCT_HARDIRQ", "ACCT_UNINTERRUPTIBLE"].contains(&name.as_str());
            assert!(renamed || words.contains(tail), "{name} maps to {words}");
        }
    }

    #[test]
    fn losses_programs_and_records_are_those_of_the_header() {
        assert_eq!(enumerators("loss").len(), LOSSES.len() + 1);
        assert_eq!(enumerators("program").len(), PROGRAMS.len() + 1);
        let records = enumerators("record_type");
        assert_eq!(records[RECORD_MAPPING as usize - 1], "RECORD_MAPPING");
        assert_eq!(records[RECORD_WORDS as usize - 1], "RECORD_WORDS");
        let kinds = enumerators("outlier_kind");
        assert_eq!(outlier_kind(kinds.len() as u32 - 1), OutlierKind::FirstCall);
        assert_eq!(enumerators("event_kind").len(), (0..20).filter_map(event_kind).count());
    }
}
