//! What a histogram measures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_form::text_form;
use crate::{Histogram, Syscall};

/// The quantity of a histogram; all are nanoseconds.
///
/// Text form: `syscall:mmap`, `off_cpu`, `run_queue_delay`, `lock:<class>`, `page_fault_sleep`,
/// `hard_irq:<name>`, `softirq:<name>`, `block_io:<major:minor>`, `direct_reclaim`, `compaction`,
/// `held_send:sched_yield`, `loop_turn`, `sampled_syscall:read`, `censored_syscall:read`, `call_window`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Metric {
    /// Duration of a system call, from entry to exit, waiting included.
    Syscall(Syscall),
    /// From leaving a CPU asleep to running again.
    OffCpu,
    /// From being ready to run (woken or preempted) to running.
    RunQueueDelay,
    /// Waiting for a contended kernel lock; the class is its name, or where it is taken.
    Lock(String),
    /// Off the CPU within a page fault.
    PageFaultSleep,
    /// Service time of a hardware interrupt while a watched thread was on that CPU.
    HardIrq(String),
    /// Service time of a softirq while a watched thread was on that CPU.
    SoftIrq(String),
    /// Block I/O request of this device, issue to completion.
    BlockIo(String),
    /// Direct memory reclaim by the thread itself.
    DirectReclaim,
    /// Memory compaction by the thread itself.
    Compaction,
    /// Sends that their thread held back, as [`EventKind::HeldSend`](crate::EventKind), of any
    /// length; the call is what it waited with.
    HeldSend(Syscall),
    /// Turns of event loops: from a return of poll, select or epoll to the thread's next call of it.
    LoopTurn,
    /// As [`Metric::Syscall`], of those that began and ended in a window in which calls are sampled.
    SampledSyscall(Syscall),
    /// Of those that began before their window and ended in it: from its begin on, which is less than
    /// they took.
    CensoredSyscall(Syscall),
    /// Windows in which calls are sampled, each as long as it was; of the host.
    CallWindow,
}

impl Metric {
    /// True if the values are some of those that there were, by no fair choice: windows show short calls
    /// whole, and of long ones a part.
    pub fn is_of_windows(&self) -> bool {
        matches!(self, Metric::SampledSyscall(_) | Metric::CensoredSyscall(_) | Metric::CallWindow)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Syscall(call) => write!(f, "syscall:{call}"),
            Metric::OffCpu => f.write_str("off_cpu"),
            Metric::RunQueueDelay => f.write_str("run_queue_delay"),
            Metric::Lock(class) => write!(f, "lock:{class}"),
            Metric::PageFaultSleep => f.write_str("page_fault_sleep"),
            Metric::HardIrq(name) => write!(f, "hard_irq:{name}"),
            Metric::SoftIrq(name) => write!(f, "softirq:{name}"),
            Metric::BlockIo(device) => write!(f, "block_io:{device}"),
            Metric::DirectReclaim => f.write_str("direct_reclaim"),
            Metric::Compaction => f.write_str("compaction"),
            Metric::HeldSend(call) => write!(f, "held_send:{call}"),
            Metric::LoopTurn => f.write_str("loop_turn"),
            Metric::SampledSyscall(call) => write!(f, "sampled_syscall:{call}"),
            Metric::CensoredSyscall(call) => write!(f, "censored_syscall:{call}"),
            Metric::CallWindow => f.write_str("call_window"),
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (kind, name) = s.split_once(':').unwrap_or((s, ""));
        Ok(match (kind, name) {
            ("syscall", name) => Metric::Syscall(name.parse()?),
            ("off_cpu", "") => Metric::OffCpu,
            ("run_queue_delay", "") => Metric::RunQueueDelay,
            ("lock", name) => Metric::Lock(name.to_owned()),
            ("page_fault_sleep", "") => Metric::PageFaultSleep,
            ("hard_irq", name) => Metric::HardIrq(name.to_owned()),
            ("softirq", name) => Metric::SoftIrq(name.to_owned()),
            ("block_io", name) => Metric::BlockIo(name.to_owned()),
            ("direct_reclaim", "") => Metric::DirectReclaim,
            ("compaction", "") => Metric::Compaction,
            ("loop_turn", "") => Metric::LoopTurn,
            ("sampled_syscall", name) => Metric::SampledSyscall(name.parse()?),
            ("censored_syscall", name) => Metric::CensoredSyscall(name.parse()?),
            ("call_window", "") => Metric::CallWindow,
            ("held_send", name) => Metric::HeldSend(name.parse()?),
            _ => return Err(format!("'{s}' is no metric")),
        })
    }
}

text_form!(Metric);

/// The values of one metric of one thread group within one second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSecond {
    /// Thread group (process) the values belong to; 0 for the host.
    pub tgid: u32,
    /// What was measured.
    pub metric: Metric,
    /// Start of the interval (about one second long).
    pub start_ns: u64,
    /// The values that ended in the interval.
    pub histogram: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_survive_their_text_form() {
        for metric in [
            Metric::Syscall(Syscall::named("mmap").unwrap()),
            Metric::OffCpu,
            Metric::RunQueueDelay,
            Metric::Lock("rwsem in ext4_file_write_iter: i_rwsem".into()),
            Metric::PageFaultSleep,
            Metric::HardIrq("local_timer".into()),
            Metric::SoftIrq("net_rx".into()),
            Metric::BlockIo("253:0".into()),
            Metric::DirectReclaim,
            Metric::Compaction,
            Metric::HeldSend(Syscall::named("sched_yield").unwrap()),
            Metric::LoopTurn,
            Metric::SampledSyscall(Syscall::named("read").unwrap()),
            Metric::CensoredSyscall(Syscall::named("read").unwrap()),
            Metric::CallWindow,
        ] {
            assert_eq!(metric.to_string().parse::<Metric>().unwrap(), metric);
        }
    }
}
