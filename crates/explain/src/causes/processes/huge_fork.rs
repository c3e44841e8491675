//! huge-fork: fork copies the page tables of a process with much memory.
//!
//! fork() gives the child a copy of all mappings and page table entries of its parent, before either
//! goes on: some 10 ms for a gigabyte in pages of 4 KiB. The thread that forks does nothing else
//! meanwhile, and threads that fault or map memory wait for mmap_lock. Databases fork to save a snapshot
//! (Redis), application servers to start workers, and many programs only to run another one.
//!
//! # Evidence
//!
//! CPU samples within the copy of an address space (copy_page_range, dup_mmap) in calls of fork and clone;
//! how many there were, and the longest; the memory of the process. Less than 1 ms for each on average, and
//! 50 ms for the longest, is the ordinary price. What
//! stores after the fork cost is fork-cow, and waiting for mmap_lock is mmap-lock.
//!
//! # Without whylag
//!
//!     strace -f -T -e trace=fork,clone,clone3 -p PID      # how long each takes
//!     redis-cli info stats | grep latest_fork_usec
//!     perf record -g -p PID -- sleep 5                    # CPU time under copy_page_range
//!
//! # Sources
//!
//! fork(2); kernel/fork.c (dup_mmap); mm/memory.c (copy_page_range); madvise(2) (MADV_DONTFORK).

use model::units::bytes;
use model::{Metric, PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults::{FORKS, forks};
use crate::text::{counted, duration, mean, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::HUGE_FORK,
    title: "fork copies the page tables of a process with much memory",
    fix: "Run other programs with posix_spawn or vfork, which copy nothing, or from a small process \
          that was forked at the start. Where the child needs the memory: huge pages (512 times fewer \
          entries), MADV_DONTFORK for what it does not need, or several smaller processes.",
    reproduce: "mysteries/bin/huge-fork-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Samples])
        .and_kernel_symbols()
        .and_histograms(),
    look_alikes: &[LookAlike {
        cause: ids::PROC_SCAN_VS_FORK,
        tell_apart: "sample kernel stacks ('perf record -g -p PID'): under copy_page_range the \
                     memory is copied, in copy_process outside of it a lock is waited for",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// Where an address space is copied.
const COPIES: [&str; 4] = ["copy_page_range", "dup_mmap", "dup_mm", "copy_mm"];
/// The fork of an ordinary process takes less.
const ORDINARY_NS: u64 = 1_000_000;
/// One as long is felt by whoever waits for the thread, however seldom it forks.
const FELT_NS: u64 = 50_000_000;

fn in_forks(path: &PathSum) -> bool {
    path.sampled && path.call.is_none_or(|call| call.is_one_of(&FORKS))
}

fn examine(case: &Case) -> Verdict {
    let time = case.time_through(&COPIES, in_forks);
    let forks = forks(case);
    if time.ns() == 0 || forks == 0 {
        return Err(Absent(format!(
            "{} took {} to copy page tables",
            counted(forks, "fork"),
            duration(time.ns())
        )));
    }
    let longest_ns = longest_ns(case).min(time.ns());
    if time.ns() / forks < ORDINARY_NS && longest_ns < FELT_NS {
        return Err(Absent(format!(
            "{} took {} on average to copy page tables: an ordinary price",
            counted(forks, "fork"),
            mean(time.ns(), forks)
        )));
    }
    let process = case.main_of(&COPIES, in_forks).unwrap_or(0);
    let title = format!(
        "{} forks, and to copy its page tables takes up to {}",
        case.process_name(process),
        duration(longest_ns.max(time.ns() / forks))
    );
    let mut claim = Claim::new(title, time.accounts.clone(), forks);
    claim.longest_ns = if longest_ns >= FELT_NS { longest_ns } else { 0 };
    claim.mechanism(format!(
        "the kernel copied all page tables of the process in {}, {} on a CPU, mean {}; the thread \
         that forks does nothing else meanwhile",
        counted(forks, "fork"),
        duration(time.ns()),
        mean(time.ns(), forks)
    ));
    claim.trigger("a process with much memory forks".to_owned());
    evidence(case, &time, &mut claim);
    rule_out(case, &mut claim);
    Ok(claim)
}

/// Of all calls that may fork; those that make threads are short.
fn longest_ns(case: &Case) -> u64 {
    let calls = FORKS.iter().filter_map(|name| Syscall::named(name).map(Metric::Syscall));
    let longest = calls.filter_map(|metric| case.histogram(&metric)?.max());
    longest.max().unwrap_or(0)
}

fn evidence(case: &Case, time: &PathTime, claim: &mut Claim) {
    claim.saw(
        format!("{}: {}", case.samples_in_words(time), duration(time.ns())),
        "on-CPU samples under copy_page_range",
    );
    let calls = FORKS.iter().filter_map(|name| {
        let metric = Metric::Syscall(Syscall::named(name)?);
        Some((name, case.histogram(&metric)?))
    });
    for (name, histogram) in calls {
        claim.saw(format!("{name}: {}", quantiles(&histogram)), "system call histogram");
    }
    if let Some(rss) = case.run.counter("process.rss_kb") {
        claim.saw(
            format!("up to {} of memory", bytes(rss.last.max(rss.first).saturating_mul(1024))),
            &rss.source,
        );
    }
    let path = case.path_in_words(&COPIES, in_forks);
    claim.saw_if(path.map(|path| format!("busy in {path}")), "most frequent sampled path");
}

fn rule_out(case: &Case, claim: &mut Claim) {
    let copied = case.faults_through(&["wp_page_copy", "do_wp_page"], |_| true);
    claim.rule_out(
        ids::FORK_COW,
        format!("copying pages at stores after a fork took {}", duration(copied.ns())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};
    use model::Account;

    const COPY: [&str; 4] = ["copy_page_range", "dup_mmap", "copy_process", "kernel_clone"];

    /// A second in calls of clone, of which there were so many, half of it in the copy.
    fn run(clones: usize, each_ns: u64) -> model::Run {
        let clone = Syscall::named("clone").unwrap();
        let account = Account::Syscall(clone);
        RunBuilder::new()
            .thread(10, 10, &[(account, SECOND)])
            .sampled_path(10, account, &COPY, 500)
            .sampled_path(10, account, &["copy_process", "kernel_clone"], 500)
            .values(Metric::Syscall(clone), 5, &vec![each_ns; clones])
            .build()
    }

    #[test]
    fn claimed_for_what_is_copied_in_a_few_long_forks() {
        let run = run(20, 22_000_000);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.total(), claim.waits), (SECOND / 2, 20));
        assert!(claim.title.contains("takes up to 25.0 ms"), "{}", claim.title);
    }

    #[test]
    fn many_ordinary_forks_are_not_this() {
        assert!(examine(&Case::new(&run(2000, 300_000))).unwrap_err().0.contains("ordinary"));
    }

    #[test]
    fn one_long_fork_among_many_is() {
        let run = run(2000, 60_000_000);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!((60_000_000..63_000_000).contains(&claim.longest_ns), "{}", claim.longest_ns);
    }
}
