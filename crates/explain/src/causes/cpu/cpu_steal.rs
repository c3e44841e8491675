//! cpu-steal: the hypervisor runs something else on the CPU, and the thread that is on it stands still.
//!
//! A virtual CPU is a thread of the hypervisor's host. While that thread waits for a real CPU, nothing
//! in the guest runs on it, whatever the guest's scheduler says: a thread that computes takes longer,
//! and no switch, no wait and no interrupt is seen. Only the hypervisor knows how long; where it tells
//! the guest (KVM, Xen, Hyper-V: "steal time"), the kernel takes it out of the time of the thread that
//! it finds on the CPU at its next tick. **A guest cannot see from which thread it was taken**: steal is
//! known for each CPU, not for each thread. The part of the watched threads is given as a range between
//! two estimates: the steal that ticks charged while they ran, and steal in proportion to their CPU time.
//!
//! # Evidence
//!
//! Time of the account `stolen`: the steal clock of the CPU grew while a watched thread was on it. The
//! same clock of all CPUs over the whole recording (/proc/stat) is shown beside it. A host that does not
//! report steal time says 0 and may take it all the same: then nothing is claimed.
//!
//! # Without whylag
//!
//!     mpstat -P ALL 1                            # %steal
//!     grep ^cpu /proc/stat                       # the eighth number, in ticks of 10 ms; read it twice
//!
//! # Sources
//!
//! kernel/sched/cputime.c (steal_account_process_time); kernel/sched/core.c (update_rq_clock_task);
//! Documentation/virt/kvm/x86/msr.rst (MSR_KVM_STEAL_TIME).

use model::{Account, RecorderPart, part_of};

use crate::case::{Case, Cpus};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::CPU_STEAL,
    title: "the hypervisor takes the CPU from the thread that is on it",
    fix: "Give the guest CPUs of its own (pinned vCPUs, a dedicated or larger machine, more CPU \
          shares or a higher limit), or move its neighbours away. Fewer busy vCPUs than the host can \
          serve at once lose less than many.",
    reproduce: "whylag record -- COMMAND, in a guest of a host with more busy vCPUs than CPUs",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[
        LookAlike {
            cause: ids::CPU_RUNQUEUE,
            tell_apart: "read %steal of 'mpstat -P ALL 1': a program of this machine that has the \
                         CPU is in %usr and %sys, the hypervisor alone is in %steal",
            mutual: false,
        },
        LookAlike {
            cause: ids::CGROUP_THROTTLE,
            tell_apart: "read nr_throttled in the cgroup's cpu.stat twice: only a quota of this \
                         machine raises it",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

/// How many times the CPU was taken is not known. Turns of guests are some milliseconds long: of so
/// many the finding is taken to be made.
const TURN_NS: u64 = 1_000_000;
/// CPUs worth a line.
const CPUS_SHOWN: usize = 4;

/// What is known of the watched threads' part.
struct Part {
    /// What ticks found on them.
    found_ns: u64,
    /// What their part of all CPU time makes likely.
    likely_ns: u64,
}

fn examine(case: &Case) -> Verdict {
    let found_ns = case.accounts.get(Account::Stolen);
    if found_ns == 0 {
        return Err(Absent(nothing_stolen(case)));
    }
    let on_cpu = case.accounts.sum_of(is_on_cpu);
    let process = case.main_process(|account| account == Account::Stolen).unwrap_or(0);
    let name = case.process_name(process);
    let title = format!("the hypervisor takes the CPU from {name}");
    let lost = [(Account::Stolen, found_ns)].into_iter().collect();
    let mut claim = Claim::new(title, lost, (found_ns / TURN_NS).max(1));
    claim.mechanism(format!(
        "of the {} in which the threads were on a CPU, the hypervisor ran something else for {}: {}",
        duration(on_cpu),
        duration(found_ns),
        percent(found_ns, on_cpu)
    ));
    claim.trigger("who had the CPU is known to the hypervisor's host alone".to_owned());
    if let Some(cpus) = case.cpus() {
        of_all_cpus(case, &cpus, found_ns, on_cpu, &mut claim);
    }
    rule_out(case, found_ns, &mut claim);
    Ok(claim)
}

fn nothing_stolen(case: &Case) -> String {
    let of_all = case.cpus().map_or(0, |cpus| cpus.stolen_ns);
    format!(
        "no time was stolen from the threads as far as the hypervisor reports it, {} from all CPUs",
        duration(of_all)
    )
}

/// On a CPU by the scheduler's account, whatever the CPU did then.
fn is_on_cpu(account: Account) -> bool {
    account.is_running() || matches!(account, Account::HardIrq | Account::SoftIrq | Account::Stolen)
}

/// The steal clocks of the host, and what follows from them.
fn of_all_cpus(case: &Case, cpus: &Cpus, found_ns: u64, on_cpu: u64, claim: &mut Claim) {
    let busy = cpus.total_ns.saturating_sub(cpus.idle_ns).saturating_sub(cpus.stolen_ns);
    let ran = on_cpu.saturating_sub(found_ns);
    let part = Part { found_ns, likely_ns: part_of(cpus.stolen_ns, ran, busy) };
    claim.saw(
        format!(
            "{} stolen from all {} CPUs, {} of the time in which they were wanted; the threads' \
             part is between {} and {}: a guest sees the CPU that lost time, not the thread",
            duration(cpus.stolen_ns),
            cpus.number,
            percent(cpus.stolen_ns, busy.saturating_add(cpus.stolen_ns)),
            duration(part.found_ns.min(part.likely_ns)),
            duration(part.found_ns.max(part.likely_ns))
        ),
        "/proc/stat; steal clock of the CPU at ticks",
    );
    for cpu in case.run.sums.cpus.iter().filter(|cpu| cpu.stolen_ns > 0).take(CPUS_SHOWN) {
        let wanted = cpu.busy_ns.saturating_add(cpu.stolen_ns);
        let text = format!(
            "CPU {}: {} stolen, {} of the time in which it was wanted",
            cpu.cpu,
            duration(cpu.stolen_ns),
            percent(cpu.stolen_ns, wanted)
        );
        claim.saw(text, "/proc/stat");
    }
    if part.likely_ns < found_ns / 2 {
        claim.doubt(
            0.7,
            "the steal clocks of all CPUs make less likely: part of it may have been taken from \
             other threads, before the tick that noticed it",
        );
    }
}

fn rule_out(case: &Case, found_ns: u64, claim: &mut Claim) {
    let queued = case.accounts.sum_of(Account::is_runnable);
    if queued < found_ns {
        claim.rule_out(
            ids::CPU_RUNQUEUE,
            format!(
                "the threads were on their CPU meanwhile; waiting for one came to {}",
                duration(queued)
            ),
        );
    }
    let throttled = case.accounts.get(Account::Throttled);
    claim
        .rule_out(ids::CGROUP_THROTTLE, format!("{} off the CPU for a quota", duration(throttled)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{CpuTime, Run};

    const STOLEN: Account = Account::Stolen;

    /// A thread that ran for 3 s and lost one; the host's two CPUs were busy for `busy_ns` each and
    /// lost `stolen_ns` each.
    fn run(busy_ns: u64, stolen_ns: u64) -> Run {
        let mut run =
            RunBuilder::new().thread(10, 10, &[(USER, 3 * SECOND), (STOLEN, SECOND)]).build();
        let cpu = |cpu| CpuTime { cpu, idle_ns: SECOND, busy_ns, stolen_ns };
        run.sums.cpus.extend((0..2).map(cpu));
        run
    }

    #[test]
    fn claimed_is_what_ticks_found_on_the_threads_and_the_interval_is_said() {
        let claim = examine(&Case::new(&run(3 * SECOND, SECOND))).unwrap();
        assert_eq!(claim.lost.get(STOLEN), SECOND);
        assert!(claim.chain[0].text.ends_with("something else for 1.00 s: 25 %"), "{claim:?}");
        // Half of all CPU time was theirs, and so, likely, half of the 2 s.
        let between = "2.00 s stolen from all 2 CPUs, 25 % of the time in which they were wanted; \
                       the threads' part is between 1.00 s and 1.00 s";
        assert!(claim.evidence[0].text.starts_with(between), "{:?}", claim.evidence);
        assert!(claim.doubts.is_empty());
        assert!(claim.ruled_out.iter().any(|other| other.cause == "cpu-runqueue"));
    }

    #[test]
    fn what_others_are_likelier_to_have_lost_is_a_doubt() {
        // 0.6 s of both CPUs, of which a quarter is likely to be the threads'.
        let claim = examine(&Case::new(&run(6 * SECOND, 3 * SECOND / 10))).unwrap();
        assert!(claim.evidence[0].text.contains("between 150 ms and 1.00 s"), "{claim:?}");
        assert_eq!(claim.doubts.len(), 1);
    }

    #[test]
    fn not_claimed_where_the_threads_lost_nothing_or_the_host_does_not_say() {
        let mut run = run(3 * SECOND, SECOND);
        run.threads.clear();
        let run = Run {
            threads: RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build().threads,
            ..run
        };
        let Absent(why) = examine(&Case::new(&run)).unwrap_err();
        assert!(why.ends_with("2.00 s from all CPUs"), "{why}");
        let silent = RunBuilder::new().thread(10, 10, &[(USER, SECOND)]).build();
        assert!(examine(&Case::new(&silent)).is_err());
    }

    #[test]
    fn time_in_the_queue_is_another_cause() {
        let queued = (Account::RunnablePreempted, 2 * SECOND);
        let run = RunBuilder::new().thread(10, 10, &[(USER, SECOND), (STOLEN, SECOND), queued]);
        let claim = examine(&Case::new(&run.build())).unwrap();
        assert!(claim.ruled_out.iter().all(|other| other.cause != "cpu-runqueue"));
    }
}
