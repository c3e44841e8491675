//! Small runs with known numbers for the tests of this room.

use std::collections::HashMap;
use std::io::{self, Write};

use model::*;

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

/// Two findings that explain 91 % of the 2 s lost in [`run`].
pub fn explanation() -> Explanation {
    let run = run();
    let wall_ns = run.wall_ns();
    let accounts = run.accounts().largest_first();
    let lost_ns = 2_000 * MS;
    let finding = |cause: &str, title: &str, share: f64| Finding {
        cause: cause.into(),
        title: title.into(),
        share,
        lost_ns: (share * lost_ns as f64) as u64,
        wall_share: share * lost_ns as f64 / wall_ns as f64,
        hurts: Some(Hurt {
            who: "thread scan (tid 82)".into(),
            lost_ns: 600 * MS,
            wanted_ns: 1_500 * MS,
        }),
        when: Some(Concentration {
            text: "97 % within 45.0 ms, at the end of the run".into(),
            share: 0.97,
            from_ns: 1_955 * MS,
            to_ns: 2_000 * MS,
        }),
        requests: None,
        minor: false,
        turns: None,
        confidence: 0.85,
        doubts: vec!["only 12 waits were long enough to have a stack of their own".into()],
        chain: [
            (Role::Symptom, "mmap takes 12.1 ms at p99 where 0.1 ms would do"),
            (Role::Mechanism, "the lock of the one address space is held while pages are mapped"),
            (Role::Trigger, "MAP_POPULATE of 1,265,444 bytes by 16 threads"),
        ]
        .map(|(role, text)| Link { role, cause: None, text: text.into() })
        .into(),
        evidence: vec![Evidence {
            text: "2,000 waits for mmap_lock, 1.60 s, overlapped holds of the same lock".into(),
            source: "mmap_lock tracepoints".into(),
        }],
        ruled_out: vec![RuledOut {
            cause: "cpu-runqueue".into(),
            because: "threads were in state D, and the CPUs 37.5 % idle".into(),
        }],
        excluded: vec![Excluded {
            what: "waiting for the disk".into(),
            because: "0 ns in block I/O".into(),
        }],
        not_ruled_out: vec![NotRuledOut {
            cause: "mm-reader".into(),
            because: "not looked at: part 'mmap_lock holders' was off (not permitted)".into(),
            tell_apart: "stop whatever reads /proc/PID/smaps and record again".into(),
        }],
        not_looked_at: vec![Excluded {
            what: "reading pages back from swap".into(),
            because: "not looked at: part 'page faults' was off (not permitted)".into(),
        }],
        fix: "read() instead of mmap(), or map without MAP_POPULATE".into(),
        reproduce: "whylag bench mmap-populate --threads 16".into(),
        verify: "whylag prove --fix 'scan --no-mmap --threads 16 /var/lib/data/file' -- \
                 whylag bench mmap-populate"
            .into(),
    };
    Explanation {
        rhythms: Vec::new(),
        coincidences: Vec::new(),
        run: run.id,
        scope: None,
        wall_ns,
        unaccounted_ns: 20 * MS,
        lost_ns,
        idle_ns: 500 * MS,
        accounts: accounts.iter().map(|(a, ns)| (*a, *ns, *ns as f64 / wall_ns as f64)).collect(),
        findings: vec![
            finding(
                "mmap-lock",
                "Threads of scan wait for the mmap_lock of their own process",
                0.61,
            ),
            finding("cpu-runqueue", "Threads wait for a CPU while stress runs", 0.3),
        ],
        not_looked_at: vec![model::NotLookedAt {
            because: "part 'on-CPU samples' was off (not permitted)".into(),
            causes: vec!["first-touch".into(), "fork-cow".into()],
        }],
        leading_account: None,
        below_bar: vec![BelowBar {
            cause: "first-touch".into(),
            lost_ns: 16 * MS,
            wall_share: 0.004,
            because: "16.0 ms is 0.4 % of the wall time (5 % are needed)".into(),
        }],
        own_delay: None,
        unexplained: vec![(Account::Blocked(Blocked::Disk), 180 * MS)],
        unexplained_stacks: Vec::new(),
        losses: run.losses.by_kind(),
    }
}

/// A step of ten rounds with `each_ns` per operation of a worker, off the CPU for what `user_ns` and
/// `system_ns` do not fill.
pub fn bench_step(workers: u32, population: u64, each_ns: f64, cpu_ns: (f64, f64)) -> BenchStep {
    let mut single = Histogram::new(bench::PRECISION_BENCH);
    (0..4_000).for_each(|n| single.record(each_ns as u64 + 12 + n % 20));
    single.record(each_ns as u64 * 1_000);
    let operations = 1_000_000 * u64::from(workers);
    let round = |n: u64| {
        // 1 % up and down.
        let each_ns = each_ns * (1.0 + (n % 3) as f64 / 100.0);
        BenchRound {
            started_ns: START + n * 100 * MS,
            ended_ns: START + (n + 1) * 100 * MS,
            median_ns: each_ns + 12.0,
            rate: f64::from(workers) * 1e9 / each_ns,
            reference_ns: 500_000.0 + n as f64,
        }
    };
    BenchStep {
        workers,
        kind: WorkerKind::Processes,
        population,
        operations,
        wall_ns: (1e6 * each_ns) as u64,
        user_ns: (operations as f64 * cpu_ns.0) as u64,
        system_ns: (operations as f64 * cpu_ns.1) as u64,
        queued_ns: None,
        single,
        net_ns: each_ns,
        rounds: (0..10).map(round).collect(),
        outliers: vec![BenchOutlier {
            worker: 0,
            start_ns: START + 250 * MS,
            ns: each_ns as u64 * 1_000,
        }],
        ended_early: false,
        warnings: Vec::new(),
        accounts: None,
    }
}

/// A run of two cases: one that four processes on two CPUs share a lock in, and one that becomes
/// slower with a population.
pub fn bench_run() -> Run {
    let case = |id: &str, steps: Vec<BenchStep>| BenchCase {
        id: id.to_owned(),
        measures: "semop() up and down on one semaphore of all".to_owned(),
        population_of: None,
        steps,
        stopped: None,
        shape: None,
    };
    let workers = [
        bench_step(1, 0, 1_000.0, (100.0, 900.0)),
        bench_step(2, 0, 1_500.0, (100.0, 1_000.0)),
        bench_step(4, 0, 4_000.0, (100.0, 900.0)),
    ];
    let population = [
        bench_step(1, 0, 5_000.0, (500.0, 4_500.0)),
        bench_step(1, 10_000, 5_100.0, (500.0, 4_600.0)),
        bench_step(1, 50_000, 12_000.0, (500.0, 11_500.0)),
    ];
    let mut run = run();
    run.header.target = Target::Bench(vec!["sem-sysv".to_owned(), "unix-socket".to_owned()]);
    run.threads.clear();
    run.facts.push(Fact {
        name: "cpu.count".into(),
        value: "2".into(),
        source: "/sys/devices/system/cpu/present".into(),
    });
    run.bench = Some(Bench {
        clock: "rdtsc at 2.596 GHz".to_owned(),
        pinned: false,
        empty: bench_step(1, 0, 1.0, (1.0, 0.0)),
        cases: vec![
            case("sem-sysv", workers.to_vec()),
            BenchCase {
                population_of: Some("open AF_UNIX sockets".to_owned()),
                stopped: Some("no more than 60000 open AF_UNIX sockets: descriptors".to_owned()),
                shape: Some(StoryShape {
                    present: true,
                    text: "2.4 times the cost beside 50000 as beside 0".to_owned(),
                }),
                ..case("unix-socket", population.to_vec())
            },
        ],
    });
    run
}
