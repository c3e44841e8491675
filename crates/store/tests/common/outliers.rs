//! Intervals that were kept whole, and their stacks.

use model::*;

use super::{STARTED_NS, syscall};

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
        source: symbol.map(|_| SourceLine { line: Some(42), first: 30 }),
    };
    let frames = vec![frame(0xffff_ffff_8100_0042, Some("down_write")), frame(id, None)];
    Stack { id: StackId(id), space, frames, truncated: space == Space::User, copies: 3 }
}
