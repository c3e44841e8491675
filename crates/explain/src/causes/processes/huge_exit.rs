//! huge-exit: the end of a process with much memory takes long.
//!
//! Before a process is gone the kernel goes through all that it had mapped and gives each page
//! back, also what it only inherited with a fork: about 30 ms for a gigabyte in small pages. Until
//! then its parent does not see its end, its sockets and locks are not free, and a CPU is busy.
//!
//! # Evidence
//!
//! CPU samples and sleeps within exit_mmap at the end of watched processes, but not where exec
//! replaces a program; how many ended; the memory that they had. Less than 1 ms for each is the
//! ordinary price.
//!
//! # Without whylag
//!
//!     # with CONFIG_KPROBES:
//!     bpftrace -e 'kprobe:exit_mmap { @t[tid] = nsecs; }
//!         kretprobe:exit_mmap /@t[tid]/ { @ms[comm] = hist((nsecs - @t[tid]) / 1000000); delete(@t[tid]); }'
//!     perf record -a -g -- sleep 5               # CPU time under exit_mmap
//!
//! # Sources
//!
//! mm/mmap.c (exit_mmap); kernel/exit.c.

use std::collections::BTreeMap;

use model::units::bytes;
use model::{PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::HUGE_EXIT,
    title: "processes with much memory take long to end",
    fix: "Let workers live longer, or fork them from a small process that has not mapped the \
          memory; use huge pages (512 times fewer to go through); give memory back beforehand, off \
          the critical path; start the successor before the end of its predecessor.",
    reproduce: "mysteries/bin/huge-exit-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::CORE_DUMP,
        tell_apart: "read CoreDumping in /proc/PID/status while the process ends, or its exit \
                         status afterwards: a dump follows a fatal signal",
        mutual: true,
    }],
    symptom: false,
    examine,
};

/// Where the memory of a process that ends is gone through.
const TEARDOWN: [&str; 1] = ["exit_mmap"];
/// The end of an ordinary process takes less.
const ORDINARY_NS: u64 = 1_000_000;

/// At the end of the process, by exit or by a signal in any call; not where exec replaces its
/// program.
fn at_the_end(path: &PathSum) -> bool {
    let execs = [Syscall::named("execve"), Syscall::named("execveat")];
    path.call.is_none_or(|call| !execs.contains(&Some(call)))
}

fn examine(case: &Case) -> Verdict {
    let time = case.time_through(&TEARDOWN, at_the_end);
    let ends = ended(case);
    if time.ns() == 0 || ends == 0 {
        return Err(Absent(format!(
            "{} ended, and going through their memory took {}",
            counted(ends, "watched process"),
            duration(time.ns())
        )));
    }
    if time.ns() / ends < ORDINARY_NS {
        return Err(Absent(format!(
            "the ends of {} took {} on average to go through their memory: an ordinary price",
            counted(ends, "process"),
            mean(time.ns(), ends)
        )));
    }
    let process = case.main_of(&TEARDOWN, at_the_end).unwrap_or(0);
    let mut claim = claim(&case.process_name(process), &time, ends);
    evidence(case, &time, ends, &mut claim);
    rule_out(case, &mut claim);
    Ok(claim)
}

fn claim(process: &str, time: &PathTime, ends: u64) -> Claim {
    let title = format!("processes such as {process} take {} to end", mean(time.ns(), ends));
    let mut claim = Claim::new(title, time.accounts.clone(), ends);
    claim.mechanism(format!(
        "the kernel went through all memory of {} that ended: {}",
        counted(ends, "process"),
        duration(time.ns())
    ));
    claim.trigger(
        "processes with much memory, their own or inherited with a fork, end again and again"
            .to_owned(),
    );
    claim
}

fn evidence(case: &Case, time: &PathTime, ends: u64, claim: &mut Claim) {
    claim.saw(
        format!(
            "{} on a CPU ({}) and {} asleep in exit_mmap",
            duration(time.ns()),
            counted(time.samples, "sample"),
            count(time.sleeps)
        ),
        "code paths under exit_mmap",
    );
    claim.saw(format!("{} ended", counted(ends, "watched process")), "sched_process_exit");
    if let Some(rss) = case.run.counter("process.rss_kb") {
        claim.saw(
            format!("up to {} of memory", bytes(rss.last.max(rss.first).saturating_mul(1024))),
            &rss.source,
        );
    }
    let path = case.path_in_words(&TEARDOWN, at_the_end);
    claim.saw_if(path.map(|p| format!("busy in {p}")), "most expensive path");
}

fn rule_out(case: &Case, claim: &mut Claim) {
    let dump = case.time_through(&["do_coredump", "vfs_coredump"], |_| true);
    claim.rule_out(ids::CORE_DUMP, format!("writing core files took {}", duration(dump.ns())));
    let accounting = case.time_through(&["acct_collect"], |_| true);
    claim.rule_out(
        ids::MANY_THREAD_VFORK,
        format!(
            "walking mappings for accounting (acct_collect) took {}",
            duration(accounting.ns())
        ),
    );
}

/// Watched processes of which no thread is left.
fn ended(case: &Case) -> u64 {
    let mut alive = BTreeMap::new();
    for thread in &case.run.threads {
        *alive.entry(thread.tgid).or_insert(false) |= thread.alive;
    }
    let summed = case.run.sums.others.iter().map(|others| others.processes);
    summed.fold(alive.values().filter(|alive| !**alive).count() as u64, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};
    use model::Account;

    const KERNEL: Account = Account::Kernel;

    /// So many processes with 1 ms each at their end, in samples of the first.
    fn run(processes: u32, frames: &[&str]) -> RunBuilder {
        let first = RunBuilder::new().sampled_path(1, KERNEL, frames, 1000);
        (1..=processes).fold(first, |builder, tgid| {
            let ns = if tgid == 1 { SECOND } else { 1 };
            builder.thread(tgid, tgid, &[(KERNEL, ns)]).dead()
        })
    }

    #[test]
    fn claimed_for_long_ends() {
        let run = run(20, &["unmap_page_range", "exit_mmap", "do_exit"]).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(KERNEL), claim.waits), (SECOND, 20));
    }

    #[test]
    fn many_ordinary_ends_are_not_this() {
        let run = run(2000, &["unmap_page_range", "exit_mmap", "do_exit"]).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("ordinary"));
    }

    #[test]
    fn a_core_dump_is_not_this() {
        let run = run(20, &["dump_user_range", "vfs_coredump", "get_signal"]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
