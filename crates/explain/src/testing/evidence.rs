//! One piece of evidence each, with plain values in all that a test is not about.

use std::collections::BTreeMap;

use model::{
    Account, Blocked, ConcurrentCall, Context, Depth, Drops, Event, EventDetail, EventKind,
    Histogram, HoldSum, JitterSeries, Outlier, OutlierKind, Presence, QueueSecond, RunnerSum,
    Socket, SocketKind, Syscall, TableRead, Tick, WaitSum, Waker,
};

pub const SECOND: u64 = 1_000_000_000;
pub const FUTEX: Account = Account::Blocked(Blocked::Futex);
pub const USER: Account = Account::User;

/// Waits of a process on an object, ended by nobody known.
pub fn wait(tgid: u32, account: Account, object: u64, count: u64, ns: u64) -> WaitSum {
    WaitSum {
        tgid,
        account,
        object,
        name: None,
        waker_tgid: 0,
        waker_comm: String::new(),
        count,
        ns,
        max_ns: ns.checked_div(count).unwrap_or(0),
        by_waiter: 0,
        lock_like: 0,
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
        asked: false,
        ends: BTreeMap::new(),
        longest_end: None,
        usual_end: None,
        open_at: None,
    }
}

/// Writers of `tgid` that waited while `holder_tgid` was in mmap.
pub fn hold(tgid: u32, holder_tgid: u32, holder_write: bool, ns: u64) -> HoldSum {
    HoldSum {
        tgid,
        waiter_write: true,
        holder_tgid,
        holder_comm: format!("holder-{holder_tgid}"),
        holder_write,
        holder_call: Syscall::named("mmap"),
        count: 100,
        ns,
        max_ns: ns / 100,
    }
}

/// `runner_tgid` ran while `tgid` waited.
pub fn runner(tgid: u32, runner_tgid: u32, count: u64, ns: u64) -> RunnerSum {
    RunnerSum {
        tgid,
        runner_tgid,
        runner_comm: format!("runner-{runner_tgid}"),
        realtime: 0,
        count,
        ns,
    }
}

/// A send that a thread of process 10 held back in sched_yield.
pub fn held_send(tid: u32, time_ns: u64, value: u64) -> Event {
    let detail = EventDetail::Waits { call: Syscall::named("sched_yield").unwrap(), times: 9 };
    Event { time_ns, kind: EventKind::HeldSend, tid, tgid: 10, value, detail }
}

/// As `RunBuilder::interval`, to be changed before it is kept.
pub fn interval(
    tid: u32,
    account: Account,
    start_ns: u64,
    duration_ns: u64,
    waker: Option<u32>,
) -> Outlier {
    let blocked = if let Account::Blocked(kind) = account { Some(kind) } else { None };
    Outlier {
        kind: if blocked.is_some() { OutlierKind::OffCpu } else { OutlierKind::RunQueue },
        tid,
        tgid: 10,
        comm: format!("thread-{tid}"),
        cpu: 0,
        start_ns,
        duration_ns,
        syscall: None,
        blocked,
        breakdown: [(account, duration_ns)].into_iter().collect(),
        object: 0x10,
        fault_ip: None,
        kernel_stack: None,
        user_stack: None,
        waker: waker.map(|tid| Waker {
            tid,
            tgid: 10,
            comm: format!("thread-{tid}"),
            context: Context::Task,
        }),
        ran_instead: Vec::new(),
        holder: None,
        timer: None,
        interrupts: None,
        first_call: None,
    }
}

/// 100 packets lost at a UDP socket of process 10, the last `ns` after its queue was empty.
pub fn drops(reason: &str, at_ns: u64, ns: u64) -> Drops {
    let kind = SocketKind::Udp;
    Drops {
        socket: Socket {
            inode: 5,
            tgid: 10,
            fd: 3,
            kind,
            address: "127.0.0.1:9000".parse().unwrap(),
        },
        reason: reason.to_owned(),
        filling_ns: at_ns,
        first_ns: at_ns + ns / 2,
        last_ns: at_ns + ns,
        count: 100,
        queued: 212_992,
        limit: 212_992,
    }
}

/// A second of descriptor 3 of process 10, its queue for receiving this long.
pub fn queue(kind: SocketKind, largest: u64, limit: u64, drops: u64) -> QueueSecond {
    QueueSecond {
        start_ns: 0,
        socket: Socket {
            inode: 5,
            tgid: 10,
            fd: 3,
            kind,
            address: "127.0.0.1:9000".parse().unwrap(),
        },
        looks: 50,
        receive: Depth { mean: largest / 2, max: largest, max_ns: 7, limit },
        send: Depth::default(),
        nagle_looks: 0,
        connecting: None,
        drops,
        resent: model::Resent::default(),
        blocked_sends: model::BlockedSends::default(),
        sent_last: None,
    }
}

/// 100 waits of process 10 for spinlocks that ended while another one was in read.
pub fn concurrent_call(
    other_tgid: u32,
    other_comm: &str,
    reads: TableRead,
    ns: u64,
) -> ConcurrentCall {
    ConcurrentCall {
        tgid: 10,
        other_tgid,
        other_comm: other_comm.to_owned(),
        other_call: Syscall(0),
        reads,
        kernel: None,
        count: 100,
        ns,
        max_ns: ns / 50,
    }
}

/// A process that had a CPU from and up to, in ms; they are within one second.
pub fn presence(tgid: u32, comm: &str, from_ms: u64, to_ms: u64) -> Presence {
    let start_ns = from_ms / 1000 * SECOND;
    let piece = |ms: u64| ((ms - from_ms / 1000 * 1000) / 10).min(100) as u8;
    let pieces = vec![(piece(from_ms), piece(to_ms).max(piece(from_ms) + 1).min(100))];
    Presence { start_ns, tgid, comm: comm.to_owned(), pieces }
}

/// Ticks that were asked for after so long and came so late, the first soon after the start.
pub fn timer_series(source: &str, interval_ns: u64, ticks: &[(u64, i64)]) -> JitterSeries {
    let mut series = JitterSeries {
        source: source.to_owned(),
        interval_ns,
        thread: None,
        started_ns: 0,
        to_wall_ns: 0,
        intended: ticks.len() as u64,
        missed: 0,
        over: 0,
        late: Histogram::new(7),
        early: Histogram::new(7),
        ticks: Vec::new(),
        worst: Vec::new(),
        periods: Vec::new(),
        pairs: None,
    };
    let mut served: u64 = 0;
    for (asked, late) in ticks {
        series.ticks.push(Tick(served + asked, *late, *asked));
        let side = if *late < 0 { &mut series.early } else { &mut series.late };
        side.record(late.unsigned_abs());
        served = (served + asked).saturating_add_signed(*late);
    }
    series
}
