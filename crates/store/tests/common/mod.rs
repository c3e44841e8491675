//! What the tests of the store share: a run with something in every part of it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::Path;
use std::process::Command;

use model::*;

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

/// Threads that are summed.
pub fn others() -> OtherThreads {
    let mut crowd = Crowd::default();
    let group = crowd.group("sh");
    crowd.add(&ThreadAccounts { tid: 200, tgid: 200, ..thread(200) }, group);
    crowd.into_sums().remove(0)
}

/// An outlier with every field set.
pub fn outlier(duration_ns: u64) -> Outlier {
    Outlier {
        kind: OutlierKind::Syscall,
        tid: 101,
        tgid: 100,
        comm: "worker \u{fc}".into(),
        cpu: 1,
        start_ns: STARTED_NS + 10,
        duration_ns,
        syscall: Some(SyscallCall {
            call: syscall("futex"),
            args: [u64::MAX, 1, 2, 3, 4, 5],
            result: Some(-110),
        }),
        blocked: Some(Blocked::MmapLockRead),
        breakdown: [(Account::Syscall(syscall("futex")), duration_ns)].into_iter().collect(),
        object: 0xffff_8880_0000_1234,
        fault_ip: Some(0x7fff_0000_1000),
        kernel_stack: Some(StackId(u64::MAX - 1)),
        user_stack: Some(StackId(7)),
        waker: Some(Waker { tid: 3, tgid: 2, comm: "other".into(), context: Context::SoftIrq }),
        ran_instead: vec![Runner { tid: 9, tgid: 8, comm: "hog".into(), realtime: 50, ns: 77 }],
        holder: Some(Holder {
            tid: 5,
            tgid: 4,
            comm: "holder".into(),
            write: true,
            call: Some(syscall("munmap")),
            overlap_ns: 55,
        }),
        timer: Some(TimerLegs {
            softexpires_ns: Some(1_000),
            expires_ns: 1_050,
            fired_ns: 1_100,
            was_idle: true,
        }),
        interrupts: Some(Interrupts { ns: 66, longest: "softirq net_rx".into(), longest_ns: 44 }),
        first_call: Some(FirstCall {
            minor_faults: 7,
            major_faults: 3,
            left: Some(SlotsLeft { unbound: 41, slots: 212 }),
        }),
    }
}

/// An outlier with nothing that is optional.
pub fn bare_outlier(duration_ns: u64) -> Outlier {
    Outlier {
        kind: OutlierKind::RunQueue,
        syscall: None,
        blocked: None,
        object: 0,
        fault_ip: None,
        kernel_stack: None,
        user_stack: None,
        waker: None,
        ran_instead: vec![],
        holder: None,
        timer: None,
        interrupts: None,
        first_call: None,
        ..outlier(duration_ns)
    }
}

pub fn stack(id: u64, space: Space) -> Stack {
    let frame = |address: u64, symbol: Option<&str>| Frame {
        address,
        module: if space == Space::Kernel { "[kernel]" } else { "/usr/lib/libc.so.6" }.into(),
        offset: address & 0xfff,
        symbol: symbol.map(str::to_owned),
        symbol_offset: 0x1f,
        unknown_because: symbol.is_none().then(|| "stripped".into()),
        after: symbol.map(|_| ImportedCall::Plt("sched_yield".into())),
    };
    let frames = vec![frame(0xffff_ffff_8100_0042, Some("down_write")), frame(id, None)];
    Stack { id: StackId(id), space, frames, truncated: space == Space::User, copies: 3 }
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
        EventKind::Exit
        | EventKind::DirectReclaim
        | EventKind::Compaction
        | EventKind::DirtyThrottle => EventDetail::None,
    };
    Event { time_ns, kind, tid: 101, tgid: 100, value: 12_345, detail }
}

pub fn wait(ns: u64) -> WaitSum {
    WaitSum {
        tgid: 100,
        account: Account::Blocked(Blocked::MmapLockRead),
        object: u64::MAX - 5,
        name: Some(ObjectName::LockClass("mmap_lock".into())),
        waker_tgid: 0,
        waker_comm: "w".into(),
        count: 2,
        ns,
        max_ns: ns,
        by_waiter: 1,
        lock_like: 1,
        many: 0,
        again: 0,
        by_parked: 0,
        waiter_tid: 0,
        waker_tid: 0,
        open: 0,
        turns: 0,
        turn_ns: 0,
        began: None,
        asked: true,
        longest_end: Some((101, model::ChainEnd::Cpu)),
        ends: [(model::ChainEnd::Cpu, ns)].into(),
    }
}

pub fn hold(ns: u64, holder_call: Option<Syscall>) -> HoldSum {
    HoldSum {
        tgid: 100,
        waiter_write: true,
        holder_tgid: 4,
        holder_comm: "holder".into(),
        holder_write: false,
        holder_call,
        count: 3,
        ns,
        max_ns: ns,
    }
}

pub fn stack_sum(ns: u64, kernel: Option<u64>, user: Option<u64>) -> StackSum {
    StackSum {
        tgid: 100,
        account: Account::RunnableWakeup,
        kernel: kernel.map(StackId),
        user: user.map(StackId),
        count: 1,
        ns,
    }
}

/// Something in every table.
fn sums() -> Sums {
    Sums {
        stack_sums: vec![stack_sum(50, Some(u64::MAX - 1), None), stack_sum(40, None, Some(7))],
        paths: vec![
            PathSum {
                tgid: 100,
                account: Account::Blocked(model::Blocked::Uninterruptible),
                call: Some(syscall("membarrier")),
                kernel: Some(StackId(u64::MAX - 1)),
                user: None,
                sampled: false,
                count: 3,
                ns: 90,
                max_ns: 50,
            },
            PathSum {
                tgid: 100,
                account: Account::User,
                call: None,
                kernel: None,
                user: Some(StackId(7)),
                sampled: true,
                count: 2,
                ns: 20,
                max_ns: 10,
            },
        ],
        concurrent_calls: vec![
            concurrent_call(TableRead::Proc("net/udp".into())),
            concurrent_call(TableRead::SocketDiag),
        ],
        retries: vec![Retry {
            pipe: true,
            tgid: 100,
            call: syscall("flock"),
            errno: 11,
            object: 7,
            count: 3,
            ns: 3_000_000,
            max_ns: 1_500_000,
        }],
        call_errors: vec![CallError { tgid: 100, call: syscall("accept4"), errno: 11, count: 7 }],
        counters: vec![Counter {
            name: "cgroup.cpu.nr_throttled".into(),
            source: "/sys/fs/cgroup/cpu.stat".into(),
            first: 5,
            last: u64::MAX,
        }],
        waits: vec![wait(60), WaitSum { waker_tgid: 2, name: None, ..wait(30) }],
        holds: vec![hold(20, Some(syscall("mmap"))), hold(10, None)],
        runners: vec![RunnerSum {
            tgid: 100,
            runner_tgid: 8,
            runner_comm: "hog".into(),
            realtime: 99,
            count: 1,
            ns: 77,
        }],
        cpus: vec![
            CpuTime { cpu: 0, idle_ns: 1, busy_ns: 2, stolen_ns: 3 },
            CpuTime { cpu: 1, idle_ns: 4, busy_ns: 5, stolen_ns: 6 },
        ],
        others: vec![others()],
        services: vec![Service {
            program: 1 << 16,
            tgid: 100,
            role: ServiceRole::Server,
            name: "port 6379".into(),
            connections: 20,
            several: 3,
            pushed: 2,
            left_out: 1,
            open: 2,
            peer: Some(Peer { tgid: 90, comm: "postgres".into() }),
            oldest_ns: Some(STARTED_NS),
        }],
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
        messages: messages(),
        presences: vec![
            presence(STARTED_NS, 2, &[(0, 3), (99, 100)]),
            presence(STARTED_NS, 100, &[(5, 6)]),
        ],
    }
}

fn presence(start_ns: u64, tgid: u32, pieces: &[(u8, u8)]) -> Presence {
    Presence { start_ns, tgid, comm: "other".into(), pieces: pieces.to_vec() }
}

/// Two slow messages, the slower one first, and one of the control group.
pub fn messages() -> Messages {
    let mut histogram = Histogram::new(5);
    (1..2000).for_each(|n| histogram.record(n * n));
    Messages {
        programs: vec![
            TracedProgram {
                program: 0,
                tgid: 100,
                path: "/dev/shm/whylag-0/100-7.trace".into(),
                language: "C".into(),
                state: TraceState::Crashed,
                flows: vec![MessageFlow {
                    flow: 1,
                    name: "order".into(),
                    points: vec!["journalled".into()],
                    publishes: vec!["fill".into()],
                    threshold_ns: 100_000,
                    begun: u64::MAX,
                    ..MessageFlow::default()
                }],
                unfinished: vec![UnfinishedMessage {
                    flow: 1,
                    id: u64::MAX,
                    tid: 101,
                    t0_ns: 1,
                    logic_start_ns: 2,
                    last_ns: 3,
                    last_name: Some("fill".into()),
                    read_ns: 9,
                }],
                ..TracedProgram::default()
            },
            TracedProgram {
                program: 1 << 16,
                tgid: 100,
                language: "sockets".into(),
                flows: vec![MessageFlow {
                    flow: 1,
                    name: "port 6379".into(),
                    kind: FlowKind::Request,
                    ..MessageFlow::default()
                }],
                ..TracedProgram::default()
            },
        ],
        seconds: vec![
            MessageSecond {
                program: 0,
                flow: 1,
                metric: MessageMetric::ToPublish(0),
                start_ns: STARTED_NS,
                histogram: histogram.clone(),
            },
            MessageSecond {
                program: 1 << 16,
                flow: 1,
                metric: MessageMetric::Answering,
                start_ns: STARTED_NS,
                histogram,
            },
        ],
        slow: vec![
            message(9, None, 4_100_000),
            Message {
                program: 1 << 16,
                at_socket: Some(at_socket()),
                ..message(10, None, 400_000)
            },
            message(8, None, 300_000),
        ],
        slow_count: 3,
        fast: vec![message(7, Some(0), 40_000)],
        calls: Vec::new(),
    }
}

/// Handed over, and with a call whose peer was recorded.
fn at_socket() -> AtSocket {
    let answer = Answer {
        program: 1 << 16,
        tid: 9,
        arrived_ns: 2,
        read_ns: 3,
        served_ns: 4,
        calls: Vec::new(),
    };
    let call = Call {
        program: 1 << 16,
        tgid: 100,
        tid: 103,
        link: u64::MAX,
        cause: 7,
        sent_ns: 1,
        arrived_ns: 5,
        read_ns: 6,
        answer: Some(answer),
    };
    let handed = Some(HandOver { tid: 103, time_ns: Some(STARTED_NS + 15) });
    AtSocket { tgid: 100, link: u64::MAX, handed, calls: vec![call] }
}

pub fn message(id: u64, sample: Option<u32>, ns: u64) -> Message {
    Message {
        program: 0,
        flow: 1,
        id,
        sample,
        t0_ns: STARTED_NS,
        logic_start_ns: STARTED_NS + 10,
        end_ns: STARTED_NS + ns,
        tid: 101,
        points: vec![MessagePoint { point: 0, time_ns: STARTED_NS + 5, tid: Some(102) }],
        published: vec![MessagePublish { publish: Some(0), time_ns: STARTED_NS + 20 }],
        publishes: 1,
        longest_gap_ns: 10,
        depth: None,
        ahead: vec![MessageAhead { flow: 1, id: 3, logic_start_ns: 4, end_ns: 5 }],
        kept_ns: 10_000,
        at_socket: None,
    }
}

/// Names and contents of all files in a folder.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A small file system in memory, unmounted when dropped.
pub struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// `None`, and the reason printed, if this test may not mount.
    pub fn mount(size: &str) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "whylag-test"]).arg(folder.path());
        let output = mount.output().unwrap();
        if !output.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Some(Tmpfs(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn make_read_only(&self) {
        let mut remount = Command::new("mount");
        assert!(remount.args(["-o", "remount,ro"]).arg(self.path()).status().unwrap().success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // At once, but lazily: a process that another test starts has this one's files until it
        // executes its program.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        if !std::thread::panicking() {
            assert!(unmounted.unwrap().success());
        }
    }
}

fn bench() -> Bench {
    let mut single = Histogram::new(model::bench::PRECISION_BENCH);
    single.record(812);
    let empty = BenchStep {
        workers: 1,
        kind: WorkerKind::Threads,
        population: 0,
        operations: 3,
        wall_ns: 1000,
        user_ns: 900,
        system_ns: 50,
        queued_ns: Some(3),
        single,
        net_ns: 12.5,
        rounds: vec![BenchRound {
            started_ns: 5,
            ended_ns: 1005,
            median_ns: 812.0,
            rate: 3e6,
            reference_ns: 1e5,
        }],
        outliers: vec![BenchOutlier { worker: 0, start_ns: 7, ns: 812 }],
        ended_early: true,
        warnings: vec!["noise".into()],
        accounts: None,
    };
    let case = BenchCase {
        id: "getppid".into(),
        measures: "a call".into(),
        population_of: None,
        steps: vec![empty.clone()],
        stopped: None,
        shape: Some(StoryShape { present: false, text: "flat".into() }),
    };
    Bench { clock: "rdtsc".into(), pinned: true, empty, cases: vec![case] }
}

/// A socket with something in its queue, and with packets lost.
pub fn sockets() -> Sockets {
    let socket = Socket {
        inode: u64::MAX,
        tgid: 7,
        fd: 3,
        kind: SocketKind::Udp,
        address: "127.0.0.1:9000".parse().unwrap(),
    };
    let receive = Depth { mean: 100, max: 212_992, max_ns: STARTED_NS + 7, limit: 212_992 };
    let queue = QueueSecond {
        start_ns: STARTED_NS,
        socket: socket.clone(),
        looks: 50,
        receive,
        send: Depth::default(),
        nagle_looks: 3,
        drops: 887,
        resent: Resent {
            segments: 3,
            timeouts: vec![Timeout {
                at_ns: STARTED_NS + 3,
                kind: TimeoutKind::Retransmission,
                after_ns: 204_000_000,
            }],
        },
        blocked_sends: BlockedSends {
            refused: 9,
            waited: 1,
            waited_ns: 77,
            bursts_ns: vec![STARTED_NS + 4],
        },
    };
    let drops = Drops {
        socket,
        reason: "SOCKET_RCVBUFF".into(),
        filling_ns: STARTED_NS,
        first_ns: STARTED_NS + 5,
        last_ns: STARTED_NS + 9,
        count: 887,
        queued: 212_992,
        limit: 212_992,
    };
    Sockets { queues: vec![queue], drops: vec![drops] }
}

fn concurrent_call(reads: TableRead) -> ConcurrentCall {
    ConcurrentCall {
        tgid: 100,
        other_tgid: 2,
        other_comm: "reader".into(),
        other_call: syscall("read"),
        reads,
        kernel: Some(StackId(u64::MAX - 1)),
        count: 3,
        ns: 90,
        max_ns: 50,
    }
}
