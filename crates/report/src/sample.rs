//! Small runs with known numbers for the tests of this room.

mod bench;
mod explanation;

use std::collections::HashMap;
use std::io::{self, Write};

use model::*;

pub use self::bench::{bench_run, bench_step};
pub use self::explanation::explanation;

/// 2 s from 1000 s on the clock: pid 77 "scan" with three threads.
const START: u64 = 1_000_000_000_000;
const MS: u64 = 1_000_000;

/// What `write` wrote.
pub fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out: Vec<u8> = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// No line is longer than `width`, unless it is a single word, and none ends in a space.
pub fn assert_fits(text: &str, width: usize) {
    for line in text.lines() {
        let single = line.split_whitespace().count() == 1;
        assert!(single || line.chars().count() <= width, "too long: {line:?}\n{text}");
        assert_eq!(line.trim_end(), line, "spaces at the end\n{text}");
    }
}

/// Took 4.1 ms, 4 of them in its logic.
pub fn message(start: u64) -> Message {
    Message {
        program: 0,
        flow: 1,
        id: 8123,
        sample: None,
        t0_ns: start,
        logic_start_ns: start + 100_000,
        end_ns: start + 4_100_000,
        tid: 82,
        points: Vec::new(),
        published: Vec::new(),
        publishes: 0,
        longest_gap_ns: 4_000_000,
        depth: Some(3),
        ahead: Vec::new(),
        kept_ns: 10_000,
        at_socket: None,
    }
}

/// A run that has just begun.
pub fn empty_run() -> Run {
    Run {
        id: RunId(12),
        header: RunHeader {
            started_unix_ns: 1_772_359_203_000_000_000,
            started_ns: START,
            target: Target::Process(77),
            follow: true,
            threshold_ns: MS,
            sampled: false,
            recorder_pid: 500,
            version: "0.1.0".into(),
            labels: Labels::new(),
        },
        heartbeat_ns: START,
        ..Run::default()
    }
}

/// A finished run with something in every part.
pub fn run() -> Run {
    let mut run = empty_run();
    run.status = RunStatus::Complete;
    run.end = Some(RunEnd {
        ended_ns: START + 2_000 * MS,
        exit_status: Some(0),
        reason: "the target exited".into(),
    });
    run.facts = [
        ("kernel.release", "6.18.0"),
        ("clocksource.current", "tsc"),
        ("sysctl.vm.swappiness", "60"),
        ("rlimit.nofile", "20000"),
    ]
    .map(|(name, value)| Fact { name: name.into(), value: value.into(), source: "/proc".into() })
    .into();
    run.capabilities = vec![
        Capability {
            part: RecorderPart::Locks,
            on: false,
            because: "no tracepoint lock:contention_begin on this kernel".into(),
        },
        Capability { part: RecorderPart::Threads, on: true, because: String::new() },
    ];
    run.processes = vec![Process {
        tgid: 77,
        comm: "scan".into(),
        exe: "/usr/bin/scan".into(),
        build_id: String::new(),
        watched: true,
    }]
    .into();
    run.threads = threads().into();
    run.seconds = seconds().into();
    run.outliers = outliers();
    run.outlier_count = 2_000;
    run.stacks = stacks().into();
    run.sums.stack_sums = stack_sums();
    run.sums.cpus = [(0, 1_000, 0), (1, 500, 20)]
        .map(|(cpu, idle, stolen)| CpuTime {
            cpu,
            idle_ns: idle * MS,
            busy_ns: (2_000 - idle - stolen) * MS,
            stolen_ns: stolen * MS,
        })
        .into();
    run.losses = Losses { seen: vec![("ring buffer full".into(), START, 7)] };
    run.cost = Cost {
        cpu_ns: 120 * MS,
        bpf_ns: 800_000,
        bpf_runs: 12_345,
        events: 4_321,
        ring_bytes: 1 << 20,
        stack_copies: 40,
        stacks_not_copied: 1_200,
        peak_rss_bytes: 30 << 20,
        attach_ns: 90 * MS,
        probes: [("sched_switch", 8_000, 500_000), ("sys_enter", 4_000, 300_000)]
            .map(|(program, runs, ns)| ProbeCost { program: program.into(), runs, ns })
            .into(),
    };
    run
}

fn mmap() -> Syscall {
    Syscall::named("mmap").unwrap()
}

/// Wall 2 + 1 + 1 s, of which 2.6 s blocked or runnable.
fn threads() -> Vec<ThreadAccounts> {
    let lock = Account::Blocked(Blocked::MmapLockWrite);
    let accounts: [&[(Account, u64)]; 3] = [
        &[
            (lock, 1_000),
            (Account::User, 700),
            (Account::Syscall(mmap()), 100),
            (Account::RunnableWakeup, 100),
            (Account::Stolen, 60),
            (Account::SoftIrq, 40),
        ],
        &[(lock, 600), (Account::User, 380), (Account::Unaccounted, 20)],
        &[(Account::Blocked(Blocked::Disk), 900), (Account::User, 100)],
    ];
    accounts
        .into_iter()
        .zip([77, 81, 82])
        .map(|(accounts, tid)| {
            let accounts: Accounts = accounts.iter().map(|(a, ms)| (*a, ms * MS)).collect();
            ThreadAccounts {
                tid,
                tgid: 77,
                comm: "scan".into(),
                first_ns: START,
                last_ns: START + accounts.total(),
                alive: true,
                open: Account::User,
                accounts,
                minor_faults: 5,
                major_faults: 0,
                sleeps: 100,
                preemptions: 3,
                migrations: 2,
                realtime: 0,
            }
        })
        .collect()
}

fn seconds() -> Vec<MetricSecond> {
    let metrics = [
        (77, Metric::Syscall(mmap()), 400, 1_500_000),
        (77, Metric::Lock("rwsem in ext4_file_write_iter: i_rwsem, ext4".into()), 40, 30_000),
        (77, Metric::OffCpu, 9, 200_000),
        (0, Metric::BlockIo("253:0".into()), 3, 90_000),
    ];
    let mut seconds = Vec::new();
    for second in 0..2u64 {
        for (tgid, metric, n, typical) in metrics.clone() {
            let mut histogram = Histogram::new(5);
            (0..n).for_each(|k| histogram.record(typical / 2 + k * k * typical / n / n));
            let start_ns = START + second * 1_000 * MS;
            seconds.push(MetricSecond { tgid, metric, start_ns, histogram });
        }
    }
    seconds
}

fn outliers() -> Vec<Outlier> {
    let slow_mmap = Outlier {
        kind: OutlierKind::Syscall,
        tid: 82,
        tgid: 77,
        comm: "scan".into(),
        cpu: 1,
        start_ns: START + 1_500 * MS,
        duration_ns: 12_100_000,
        syscall: Some(SyscallCall {
            call: mmap(),
            args: [0, 1_265_444, 1, 0x8002, 65, 0],
            result: Some(0x7f12_3456_7000),
        }),
        blocked: Some(Blocked::MmapLockWrite),
        breakdown: [
            (Account::Blocked(Blocked::MmapLockWrite), 11_800_000),
            (Account::Syscall(mmap()), 200_000),
            (Account::RunnableWakeup, 100_000),
        ]
        .into_iter()
        .collect(),
        object: 0xffff_8881_0000_4060,
        fault_ip: None,
        kernel_stack: Some(StackId(1)),
        user_stack: Some(StackId(2)),
        waker: Some(Waker { tid: 81, tgid: 77, comm: "scan".into(), context: Context::Task }),
        ran_instead: vec![Runner {
            tid: 99,
            tgid: 99,
            comm: "stress".into(),
            realtime: 0,
            ns: 90_000,
        }],
        holder: Some(Holder {
            tid: 81,
            tgid: 77,
            comm: "scan".into(),
            write: true,
            call: Some(mmap()),
            overlap_ns: 9_200_000,
        }),
        timer: None,
        interrupts: None,
        first_call: None,
    };
    let slow_read = Outlier {
        kind: OutlierKind::OffCpu,
        duration_ns: 3_000_000,
        syscall: Some(SyscallCall {
            call: Syscall::named("read").unwrap(),
            args: [3, 0x7ffc_0000_1000, 4_096, 0, 0, 0],
            result: None,
        }),
        blocked: Some(Blocked::Disk),
        breakdown: [(Account::Blocked(Blocked::Disk), 3_000_000)].into_iter().collect(),
        object: 0,
        user_stack: None,
        waker: Some(Waker { tid: 0, tgid: 0, comm: "swapper/1".into(), context: Context::SoftIrq }),
        ran_instead: Vec::new(),
        holder: None,
        ..slow_mmap.clone()
    };
    vec![slow_mmap, slow_read]
}

fn stacks() -> HashMap<StackId, Stack> {
    let frame = |module: &str, symbol: Option<&str>, offset, symbol_offset| Frame {
        address: 0x7f00_0000_0000 + offset,
        module: module.into(),
        offset,
        symbol: symbol.map(str::to_owned),
        symbol_offset,
        unknown_because: symbol.is_none().then(|| "stripped".to_owned()),
        after: None,
        source: None,
    };
    let kernel = |name, offset| frame("[kernel]", Some(name), offset, offset);
    let kernel_frames = vec![
        kernel("rwsem_down_write_slowpath", 0x1f),
        kernel("vm_mmap_pgoff", 0xd3),
        kernel("entry_SYSCALL_64", 0x76),
    ];
    let user_frames = vec![
        frame("/usr/lib/libc.so.6", Some("__mmap"), 0x11_c3fa, 0x1a),
        frame("/usr/bin/scanner", Some("scan_block(u8; 4)"), 0x2000, 0x10),
        frame("/usr/bin/scanner", None, 0x1234, 0),
    ];
    let stack = |id, space, frames, truncated| {
        (StackId(id), Stack { id: StackId(id), space, frames, truncated, copies: 0 })
    };
    [stack(1, Space::Kernel, kernel_frames, false), stack(2, Space::User, user_frames, true)].into()
}

/// 2.1 s.
fn stack_sums() -> Vec<StackSum> {
    let sum = |account, kernel: Option<u64>, user: Option<u64>, ms: u64| StackSum {
        tgid: 77,
        account,
        kernel: kernel.map(StackId),
        user: user.map(StackId),
        count: 10,
        ns: ms * MS,
    };
    vec![
        sum(Account::Blocked(Blocked::MmapLockWrite), Some(1), Some(2), 1_500),
        sum(Account::RunnableWakeup, Some(1), Some(2), 50),
        sum(Account::Blocked(Blocked::Disk), Some(1), None, 550),
    ]
}
