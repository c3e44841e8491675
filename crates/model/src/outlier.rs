//! One long system call, off-CPU interval, run-queue delay or lock hold, kept whole.

use serde::{Deserialize, Serialize};

use crate::{Accounts, Blocked, StackId, Syscall};

/// What was long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutlierKind {
    /// A system call, from entry to exit.
    Syscall,
    /// From leaving the CPU asleep to running again.
    OffCpu,
    /// From being preempted, or woken, to running again.
    RunQueue,
    /// mmap_lock held this long.
    LockHold,
    /// The first call of a function that is bound lazily, from its first page fault in the dynamic
    /// linker to the thread's next system call or page fault elsewhere: at most so long it took.
    FirstCall,
}

impl OutlierKind {
    /// False if the waits within it are outliers themselves: then its time is not to be added.
    pub fn is_own_time(self) -> bool {
        !matches!(self, OutlierKind::LockHold | OutlierKind::FirstCall)
    }
}

/// In which context something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// An ordinary thread.
    Task,
    /// A softirq that happened to run on top of the named thread.
    SoftIrq,
    /// A hardware interrupt that happened to run on top of the named thread.
    HardIrq,
}

/// A call with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallCall {
    /// Which.
    pub call: Syscall,
    /// Its six argument registers; those beyond the call's own arity are meaningless.
    pub args: [u64; 6],
    /// What it returned (negative: -errno); `None` if it had not returned.
    pub result: Option<i64>,
}

/// Who ended a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waker {
    /// Thread.
    pub tid: u32,
    /// Process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// If not `Task`, the interrupt woke the thread and the named thread was merely interrupted.
    pub context: Context,
}

/// Who ran on the CPU while the thread waited for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// Thread.
    pub tid: u32,
    /// Process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// Its priority when it ran, as in `ThreadAccounts::realtime`.
    #[serde(default)]
    pub realtime: u8,
    /// How long it ran within the wait.
    pub ns: u64,
}

/// Who held the lock for the largest part of the wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Thread.
    pub tid: u32,
    /// Process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// True if it held the lock exclusively.
    pub write: bool,
    /// The call it was in, if any.
    pub call: Option<Syscall>,
    /// How long its hold overlapped the wait.
    pub overlap_ns: u64,
}

/// The timer that ended a sleep, all on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerLegs {
    /// When it was asked to fire; `None` for a timer in jiffies, which only knows the tick of the
    /// kernel's clock that the time was rounded up to.
    pub softexpires_ns: Option<u64>,
    /// Until when the kernel could put that off, in order to fire several timers together: the
    /// time asked for and the timer slack. For a timer in jiffies, its tick.
    pub expires_ns: u64,
    /// When it fired.
    pub fired_ns: u64,
    /// True if nothing ran on the CPU that it fired on, which had to be woken first.
    pub was_idle: bool,
}

/// Interrupts and softirqs on a CPU that a thread was ready to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// All of them together.
    pub ns: u64,
    /// The longest: `softirq net_rx`, `irq24`, `local_timer`.
    pub longest: String,
    /// How long that one took.
    pub longest_ns: u64,
}

/// What the kernel counted of a thread during the first call of a function. Which function it was,
/// and who called it, is in the user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstCall {
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults that read from one.
    pub major_faults: u64,
    /// What is still to come in the caller's library; `None` if its memory could not be read.
    #[serde(default)]
    pub left: Option<SlotsLeft>,
}

/// Slots of a library's PLT, as they were when the recorder looked, soon after the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotsLeft {
    /// Not bound yet: the first call of each goes through the dynamic linker.
    pub unbound: u64,
    /// All.
    pub slots: u64,
}

/// One interval beyond the threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlier {
    /// What was long.
    pub kind: OutlierKind,
    /// Thread it happened to.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// CPU it ended on.
    pub cpu: u32,
    /// Start.
    pub start_ns: u64,
    /// Length.
    pub duration_ns: u64,
    /// The system call it is, or happened in.
    pub syscall: Option<SyscallCall>,
    /// What was waited for (off-CPU intervals that slept).
    pub blocked: Option<Blocked>,
    /// Where `duration_ns` went; sums to it. For a lock hold all of it is unaccounted: what the
    /// holder did meanwhile is in its own outliers.
    pub breakdown: Accounts,
    /// What was waited for, as a number: futex word, lock, inode, faulting address; for a lock
    /// hold the process whose mmap_lock it was.
    pub object: u64,
    /// Instruction that faulted, for page faults.
    pub fault_ip: Option<u64>,
    /// Kernel stack where the thread slept (or the holder released).
    pub kernel_stack: Option<StackId>,
    /// User stack.
    pub user_stack: Option<StackId>,
    /// Who ended the sleep.
    pub waker: Option<Waker>,
    /// Who ran instead, longest first.
    pub ran_instead: Vec<Runner>,
    /// Who held the lock.
    pub holder: Option<Holder>,
    /// Which timer ended the sleep, if one did and timers were recorded.
    pub timer: Option<TimerLegs>,
    /// What interrupts did on the CPU between being ready and running.
    pub interrupts: Option<Interrupts>,
    /// Page faults of a first call.
    #[serde(default)]
    pub first_call: Option<FirstCall>,
}

impl Outlier {
    /// End: the first nanosecond after it.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// A time that the thread, or its process, had set was over: then an interrupt ends a wait which is for no
    /// device. What comes from a network or another thread ends it otherwise.
    pub fn is_ended_by_timer(&self) -> bool {
        let may_be_timed = matches!(
            self.blocked,
            Some(
                Blocked::Poll
                    | Blocked::TimerSleep
                    | Blocked::Futex
                    | Blocked::SocketReceive
                    | Blocked::SocketConnect
            )
        );
        let by_interrupt = self.waker.as_ref().is_some_and(|w| w.context == Context::HardIrq);
        self.timer.is_some() || (may_be_timed && by_interrupt)
    }
}
