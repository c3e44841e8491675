//! Softirqs of the threads' own: raised by their calls, for packets of theirs, to free what they closed.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Metric, MetricSecond, PathSum, SocketKind, part_of};

use crate::case::Case;

/// Where softirqs run that the running thread raised itself.
const OWN: [&str; 2] = ["__local_bh_enable_ip", "do_softirq"];
/// Softirqs in which what was queued for later is freed.
const RCU: &str = "rcu";
/// The function of the kernel that does it.
const RCU_CORE: &str = "rcu_core";
/// Softirqs in which packets are received.
const RECEIVING: &str = "net_rx";
/// Calls for a packet that is received, or that is sent and acknowledged.
const CALLS: [&str; 6] = ["recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg"];
/// The same if the process has a connection: they are for files, too.
const CALLS_OF_FILES: [&str; 4] = ["read", "readv", "write", "writev"];

/// Softirqs that the threads have to thank themselves for.
pub struct Own {
    /// Within their own system calls, by samples.
    pub raised_ns: u64,
    /// At most so much was for packets that they received, or that came for those they sent.
    pub packets_ns: u64,
    /// Calls that receive or send.
    pub calls: u64,
    /// The threads' part of what was freed.
    pub freed_ns: u64,
}

impl Own {
    pub fn of(case: &Case, served: u64) -> Self {
        let in_softirq = |path: &PathSum| path.sampled && path.account == Account::SoftIrq;
        let raised = case
            .time_through(&OWN, |path| in_softirq(path) && !case.passes(path, &[RCU_CORE]))
            .ns()
            .min(served);
        let traffic = traffic(case);
        // A packet that a system call sent over the loopback is in both.
        Own {
            raised_ns: raised,
            packets_ns: traffic.values().map(Traffic::own_ns).sum::<u64>().min(served),
            calls: traffic.values().map(|one| one.calls).sum(),
            freed_ns: freed(case).min(served),
        }
    }

    pub fn ns(&self, served: u64) -> u64 {
        self.raised_ns.max(self.packets_ns).saturating_add(self.freed_ns).min(served)
    }
}

/// Of RCU callbacks, the part of the threads in all that ran: who runs on a CPU queues there.
fn freed(case: &Case) -> u64 {
    let Some(cpus) = case.cpus() else { return 0 };
    let busy = cpus.total_ns.saturating_sub(cpus.idle_ns).saturating_sub(cpus.stolen_ns);
    let all = case.histogram(&Metric::SoftIrq(RCU.to_owned())).map_or(0, |all| all.sum());
    part_of(all, on_cpu(case).min(busy), busy)
}

/// What a program's sockets did, and the softirqs that received packets on its CPUs.
#[derive(Default)]
struct Traffic {
    calls: u64,
    softirqs: u64,
    ns: u64,
}

impl Traffic {
    fn own_ns(&self) -> u64 {
        part_of(self.ns, self.calls, self.softirqs)
    }
}

/// By name: a server's processes receive for each other.
fn traffic<'a>(case: &Case<'a>) -> BTreeMap<&'a str, Traffic> {
    let has_connection: BTreeSet<u32> = case
        .run
        .sockets
        .queues
        .iter()
        .filter(|second| second.socket.kind == SocketKind::Tcp)
        .map(|second| second.socket.tgid)
        .collect();
    let is_packet = |second: &MetricSecond| match second.metric {
        Metric::Syscall(call) => {
            call.is_one_of(&CALLS)
                || (call.is_one_of(&CALLS_OF_FILES) && has_connection.contains(&second.tgid))
        }
        _ => false,
    };
    let mut programs = BTreeMap::<&str, Traffic>::new();
    for second in &case.run.seconds {
        let is_rx = matches!(&second.metric, Metric::SoftIrq(name) if name == RECEIVING);
        if !is_rx && !is_packet(second) {
            continue;
        }
        let program = programs.entry(case.run.comm(second.tgid)).or_default();
        let number = second.histogram.count();
        if is_rx {
            program.softirqs = program.softirqs.saturating_add(number);
            program.ns = program.ns.saturating_add(second.histogram.sum());
        } else {
            program.calls = program.calls.saturating_add(number);
        }
    }
    programs
}

/// Time of the threads on a CPU, interrupts included.
pub fn on_cpu(case: &Case) -> u64 {
    case.accounts.sum_of(|a| a.is_running() || matches!(a, Account::HardIrq | Account::SoftIrq))
}
