//! The sums of a run: something in every table.

use model::*;

use super::{STARTED_NS, syscall, thread};

/// Something in every table.
pub fn sums() -> Sums {
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
                tid: 0,
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
                tid: 101,
                count: 2,
                ns: 20,
                max_ns: 10,
            },
        ],
        concurrent_calls: vec![
            concurrent_call(TableRead::Proc("net/udp".into())),
            concurrent_call(TableRead::SocketDiag),
        ],
        page_reads: vec![model::PageRead {
            tgid: 100,
            call: Some(Syscall(0)),
            evictor: Some(model::Evictor {
                tgid: 4_000,
                comm: "backup".into(),
                call: Some(Syscall(221)),
                reclaim: false,
            }),
            file: "index.db".into(),
            pages: 77,
        }],
        retries: vec![Retry {
            pipe: true,
            account: Account::Blocked(Blocked::Futex),
            name: Some("/run/a lock".into()),
            won_ns: 2_000_000,
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
        bound: vec![BoundThreads {
            tgid: 100,
            cpus: vec![0, 3],
            threads: 2,
            waited_ns: 7,
            ran_ns: 9,
        }],
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
            packets: 6,
            given_up: 4,
            packets_since_ns: Some(STARTED_NS + 1),
            calls_at_once: vec![3, 5],
            oldest_ns: Some(STARTED_NS),
        }],
    }
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
        idle_turn_ns: 0,
        began: None,
        asked: true,
        longest_end: Some((101, model::ChainEnd::Cpu)),
        usual_end: Some((102, model::ChainEnd::Timer)),
        open_at: Some(model::StackId(7)),
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

/// Threads that are summed.
pub fn others() -> OtherThreads {
    let mut crowd = Crowd::default();
    let group = crowd.group("sh");
    crowd.add(&ThreadAccounts { tid: 200, tgid: 200, ..thread(200) }, group);
    crowd.into_sums().remove(0)
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
