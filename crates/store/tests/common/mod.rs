//! What the tests of the store share: a run with something in every part of it.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

mod bench;
mod disk;
mod messages;
mod outliers;
mod sockets;
mod sums;

use model::*;

use self::bench::bench;
pub use self::disk::{Tmpfs, contents};
pub use self::messages::{message, messages};
pub use self::outliers::{bare_outlier, outlier, stack};
pub use self::sockets::sockets;
pub use self::sums::{hold, others, stack_sum, sums, wait};

pub const STARTED_NS: u64 = 1_000_000_000_000;

pub fn header() -> RunHeader {
    RunHeader {
        started_unix_ns: 1_763_700_000_000_000_000,
        started_ns: STARTED_NS,
        target: Target::Command(vec!["sh".into(), "-c".into(), "sleep \"1\"".into()]),
        follow: true,
        threshold_ns: 0,
        sampled: false,
        recorder_pid: std::process::id(),
        version: "0.1.0".into(),
        labels: [("build".into(), "42".into())].into(),
    }
}

pub fn end() -> RunEnd {
    RunEnd {
        ended_ns: STARTED_NS + 2_500_000_000,
        exit_status: Some(137),
        reason: "the command ended".into(),
    }
}

/// A batch with something in every part.
pub fn full_batch() -> Batch {
    Batch {
        sockets: sockets(),
        heartbeat_ns: STARTED_NS + 2_000_000_000,
        facts: vec![
            Fact { name: "kernel.release".into(), value: "6.18".into(), source: "uname".into() },
            Fact { name: "clocksource.current".into(), value: "tsc".into(), source: "/sys".into() },
        ],
        capabilities: vec![
            Capability { part: RecorderPart::Threads, on: true, because: String::new() },
            Capability {
                part: RecorderPart::Locks,
                on: false,
                because: "no such tracepoint".into(),
            },
        ],
        processes: vec![
            Process {
                tgid: 2,
                comm: "other".into(),
                exe: String::new(),
                build_id: String::new(),
                watched: false,
            },
            Process {
                tgid: 100,
                comm: "app".into(),
                exe: "/bin/app".into(),
                build_id: "abcd".into(),
                watched: true,
            },
        ],
        threads: vec![thread(101), thread(102)],
        seconds: vec![
            second(Metric::Syscall(syscall("mmap")), STARTED_NS, &[1, 900, 70_000, u64::MAX]),
            second(Metric::Lock("a \"b\": c".into()), STARTED_NS + 1, &[0]),
            second(Metric::OffCpu, STARTED_NS + 1, &[]),
        ],
        outliers: vec![outlier(9_000_000), bare_outlier(400_000)],
        events: vec![
            event(EventKind::BlockIo, STARTED_NS + 5),
            event(EventKind::Exec, STARTED_NS + 6),
        ],
        stacks: vec![stack(u64::MAX - 1, Space::Kernel), stack(7, Space::User)],
        sums: sums(),
        losses: vec![("ring full".into(), STARTED_NS + 3, 44)],
        cost: Some(Cost {
            cpu_ns: 1,
            bpf_ns: 2,
            bpf_runs: 3,
            events: 4,
            ring_bytes: 5,
            peak_rss_bytes: 6,
            attach_ns: 7,
            probes: vec![ProbeCost { program: "switch".into(), runs: 3, ns: 2 }],
            stack_copies: 7,
            stacks_not_copied: 8,
        }),
        bench: Some(bench()),
        jitter: Some(Jitter::default()),
        ticks: vec![],
        messages: messages(),
        presences: vec![
            presence(STARTED_NS, 2, &[(0, 3), (99, 100)]),
            presence(STARTED_NS, 100, &[(5, 6)]),
        ],
    }
}

pub fn syscall(name: &str) -> Syscall {
    Syscall::named(name).unwrap()
}

pub fn thread(tid: u32) -> ThreadAccounts {
    let accounts: Accounts = [
        (Account::User, 300),
        (Account::Syscall(syscall("mmap")), 30),
        (Account::Blocked(Blocked::MmapLockWrite), 3),
    ]
    .into_iter()
    .collect();
    ThreadAccounts {
        tid,
        tgid: 100,
        comm: format!("worker {tid}"),
        first_ns: STARTED_NS,
        last_ns: STARTED_NS + accounts.total(),
        alive: true,
        open: Account::Blocked(Blocked::Poll),
        accounts,
        minor_faults: 4,
        major_faults: 5,
        sleeps: 6,
        preemptions: 7,
        migrations: 8,
        realtime: 30,
    }
}

pub fn second(metric: Metric, start_ns: u64, values: &[u64]) -> MetricSecond {
    let mut histogram = Histogram::new(5);
    values.iter().for_each(|value| histogram.record(*value));
    MetricSecond { tgid: 100, metric, start_ns, histogram }
}

pub fn event(kind: EventKind, time_ns: u64) -> Event {
    let detail = match kind {
        EventKind::Exec | EventKind::Fork => EventDetail::Program("/bin/true".into()),
        EventKind::Signal => EventDetail::Sender { comm: "bash".into(), tid: 77 },
        EventKind::BlockIo | EventKind::JournalCommit => EventDetail::Device("253:0".into()),
        EventKind::HeldSend => EventDetail::Waits { call: syscall("sched_yield"), times: 12 },
        EventKind::Spin => EventDetail::Call(syscall("bind")),
        EventKind::Exit
        | EventKind::DirectReclaim
        | EventKind::Compaction
        | EventKind::DirtyThrottle => EventDetail::None,
    };
    Event { time_ns, kind, tid: 101, tgid: 100, value: 12_345, detail }
}

fn presence(start_ns: u64, tgid: u32, pieces: &[(u8, u8)]) -> Presence {
    Presence { start_ns, tgid, comm: "other".into(), pieces: pieces.to_vec() }
}
