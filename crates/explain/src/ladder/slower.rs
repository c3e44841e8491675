//! Why an operation takes longer on one rung than on another, as far as the data say.

use model::{Account, Accounts, BenchStep, Blocked};

use crate::text::{share, times};

/// A part of the workers' time from which on an account is named.
const WORTH_NAMING: f64 = 0.1;
/// Growth of CPU time per operation worth telling.
const GROWN: f64 = 1.25;

/// An operation of one worker: where its time goes, ns.
struct PerOperation {
    wall: f64,
    user: f64,
    system: f64,
    /// Ready to run, without a CPU.
    queued: Option<f64>,
}

impl PerOperation {
    fn of(step: &BenchStep) -> PerOperation {
        let operations = step.operations.max(1) as f64;
        PerOperation {
            wall: step.wall_ns as f64 * f64::from(step.workers) / operations,
            user: step.user_ns as f64 / operations,
            system: step.system_ns as f64 / operations,
            queued: step.queued_ns.map(|ns| ns as f64 / operations),
        }
    }

    fn cpu(&self) -> f64 {
        self.user + self.system
    }

    fn off(&self) -> f64 {
        (self.wall - self.cpu()).max(0.0)
    }
}

/// Why an operation takes longer on `last`; `None` if the data do not carry a reason.
pub fn reason(first: &BenchStep, last: &BenchStep, cpus: Option<u32>) -> Option<String> {
    let (before, after) = (PerOperation::of(first), PerOperation::of(last));
    let growth = after.wall - before.wall;
    if growth <= 0.0 {
        return None;
    }
    let waits_more = after.off() - before.off() >= growth / 2.0;
    let seen = last.accounts.as_ref().and_then(|now| seen(now, first.accounts.as_ref()));
    match seen {
        Some(text) => Some(text),
        None if waits_more => Some(off_cpu(&before, &after, last, cpus)),
        None => cpu_growth(first, last).map(|growth| {
            format!("{growth}: they get in each other's way on the CPUs (spinning, cache lines)")
        }),
    }
}

/// What the recorder saw: the account outside of plain running that grew most, as a part of the
/// workers' time.
fn seen(now: &Accounts, before: Option<&Accounts>) -> Option<String> {
    let part = |accounts: &Accounts, account: Account| {
        accounts.get(account) as f64 / accounts.total().max(1) as f64
    };
    let is_plain = |account| {
        matches!(account, Account::Unaccounted)
            || (Account::is_running(account) && account != Account::Spin)
    };
    let growth = |account| part(now, account) - before.map_or(0.0, |before| part(before, account));
    let largest = now
        .iter()
        .map(|(account, _)| account)
        .filter(|account| !is_plain(*account))
        .max_by(|a, b| growth(*a).total_cmp(&growth(*b)))
        .filter(|account| growth(*account) >= WORTH_NAMING)?;
    let how = format!("{}, {} of their time", largest.describe(), share(part(now, largest)));
    Some(match largest {
        Account::Blocked(kind) if kind.is_kernel_lock() => {
            format!("serialised by a kernel lock ({how})")
        }
        Account::Blocked(Blocked::Futex) => format!("serialised by a lock of their own ({how})"),
        Account::Spin => format!("serialised by a kernel spinlock ({how})"),
        account if account.is_waiting_for_cpu() => format!("short of CPUs ({how})"),
        _ => how,
    })
}

/// Off the CPU, and nobody has recorded why: for want of a CPU, or for something else.
fn off_cpu(
    before: &PerOperation,
    after: &PerOperation,
    last: &BenchStep,
    cpus: Option<u32>,
) -> String {
    let (off, queued) = (share(after.off() / after.wall), after.queued);
    let hint = match last.accounts {
        Some(_) => ", for nothing in particular",
        None => "; --with-kernel says for what",
    };
    let Some(queued) = queued else {
        return format!("waiting off the CPU {off} of their time{hint}");
    };
    let more_queued = queued - before.queued.unwrap_or(0.0);
    if more_queued * 2.0 < after.off() - before.off() {
        let asleep = share((after.off() - queued).max(0.0) / after.wall);
        return format!("asleep {asleep} of their time{hint}");
    }
    let part = share(queued / after.wall);
    match cpus {
        Some(cpus) if last.workers > cpus => {
            format!("waiting for a CPU {part} of their time: {cpus} CPUs for {}", last.workers)
        }
        _ => format!("waiting {part} of their time for a CPU that another program had"),
    }
}

/// How user and system time of an operation grew, if one did.
pub fn cpu_growth(first: &BenchStep, last: &BenchStep) -> Option<String> {
    let (before, after) = (PerOperation::of(first), PerOperation::of(last));
    // A part of what an operation took at first, so that nothing grows from almost nothing.
    let least = before.wall / 20.0;
    let grown = |name: &str, before: f64, after: f64| {
        let ratio = after / before.max(least).max(f64::MIN_POSITIVE);
        (ratio >= GROWN).then(|| format!("{name} time per operation {}", times(ratio)))
    };
    let system = grown("system", before.system, after.system);
    let user = grown("user", before.user, after.user);
    let both: Vec<String> = [system, user].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join(", "))
}
