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
//! how many there were, and the longest; the memory of the process. Less than 1 ms for each of a process on
//! average is the ordinary price; one of 50 ms is named however seldom the process forks. What
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
use model::{PathSum, RecorderPart};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults::{self, FORKS};
use crate::text::{counted, duration};

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
/// The forks of an ordinary process take less on average.
const ORDINARY_NS: u64 = 1_000_000;
/// One as long is felt by whoever waits for the thread, however seldom it forks.
const FELT_NS: u64 = 50_000_000;

fn in_forks(path: &PathSum) -> bool {
    path.sampled && path.call.is_none_or(|call| call.is_one_of(&FORKS))
}

/// What a process took to copy its page tables.
struct Copies {
    process: u32,
    ns: u64,
    forks: u64,
}

impl Copies {
    fn mean_ns(&self) -> u64 {
        self.ns / self.forks.max(1)
    }
}

/// The processes whose forks are no ordinary ones.
fn large(case: &Case) -> Vec<Copies> {
    let forks = page_faults::forks_by_process(case);
    let copies = |(process, ns)| {
        let forks = forks.get(&process).copied()?;
        Some(Copies { process, ns, forks })
    };
    let processes = case.time_by_process(&COPIES, in_forks).into_iter().filter_map(copies);
    processes.filter(|copies| copies.forks > 0 && copies.mean_ns() >= ORDINARY_NS).collect()
}

fn examine(case: &Case) -> Verdict {
    let large = large(case);
    let Some(main) = large.iter().max_by_key(|copies| copies.ns) else {
        let (forks, time) = (page_faults::forks(case), case.time_through(&COPIES, in_forks));
        return Err(Absent(format!(
            "{} took {} in all to copy page tables, and those of no process 1 ms on average",
            counted(forks, "fork"),
            duration(time.ns())
        )));
    };
    let is_large = |path: &PathSum| large.iter().any(|copies| copies.process == path.tgid);
    let time = case.time_through(&COPIES, |path| in_forks(path) && is_large(path));
    let forks = large.iter().map(|copies| copies.forks).fold(0, u64::saturating_add);
    let longest_ns = page_faults::longest_fork(case, main.process);
    let title = format!(
        "forks of {} copy its page tables: {} on average, the longest fork took {}",
        case.process_name(main.process),
        duration(main.mean_ns()),
        duration(longest_ns)
    );
    let mut claim = Claim::new(title, time.accounts.clone(), forks);
    claim.is_stall = true;
    claim.longest_ns = if longest_ns >= FELT_NS { longest_ns } else { 0 };
    claim.mechanism(format!(
        "the kernel copied all page tables of the process in {}, {} on a CPU; the thread that forks \
         does nothing else meanwhile",
        counted(forks, "fork"),
        duration(time.ns())
    ));
    claim.trigger("a process with much memory forks".to_owned());
    evidence(case, &time, main.process, &mut claim);
    rule_out(case, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, time: &PathTime, process: u32, claim: &mut Claim) {
    claim.saw(
        format!("{}: {}", case.samples_in_words(time), duration(time.ns())),
        "on-CPU samples under copy_page_range",
    );
    page_faults::saw_fork_calls(case, claim);
    let status = format!("/proc/{process}/status");
    let counters = case.run.sums.counters.iter().filter(|counter| counter.source == status);
    if let Some(rss) = counters.clone().find(|counter| counter.name == "process.rss_kb") {
        let most = rss.last.max(rss.first).saturating_mul(1024);
        claim.saw(format!("up to {} of memory", bytes(most)), &status);
    }
    let path = case.path_in_words(&COPIES, in_forks);
    claim.saw_if(path.map(|path| format!("busy in {path}")), "most frequent sampled path");
}

fn rule_out(case: &Case, claim: &mut Claim) {
    let copied = page_faults::copied_pages(case);
    claim.rule_out(
        ids::FORK_COW,
        format!("copying pages at stores after a fork took {}", duration(copied.ns())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND};
    use model::{Account, Metric, Syscall};

    const COPY: [&str; 4] = ["copy_page_range", "dup_mmap", "copy_process", "kernel_clone"];

    /// A second in calls of clone by process 10, of which there were so many, half of it in the copy; and
    /// 1,000 short ones of process 20.
    fn run(clones: usize, each_ns: u64) -> model::Run {
        let clone = Syscall::named("clone").unwrap();
        let account = Account::Syscall(clone);
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(account, SECOND)])
            .thread(20, 20, &[(account, SECOND / 10)])
            .sampled_path(10, account, &COPY, 500)
            .sampled_path(10, account, &["copy_process", "kernel_clone"], 500)
            .sampled_path(20, account, &COPY, 100)
            .values(Metric::Syscall(clone), 5, &vec![each_ns; clones])
            .values(Metric::Syscall(clone), 5, &[100_000; 1000])
            .build();
        run.seconds[1].tgid = 20;
        run
    }

    #[test]
    fn claimed_of_the_process_whose_forks_are_long() {
        let run = run(20, 22_000_000);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.total(), claim.waits), (SECOND / 2, 20));
        let title = "(pid 10) copy its page tables: 25.0 ms on average, the longest fork took 22";
        assert!(claim.title.contains(title), "{}", claim.title);
        assert_eq!(claim.longest_ns, 0, "it is ranked by what all of them took");
    }

    #[test]
    fn many_ordinary_forks_are_not_this() {
        assert!(
            examine(&Case::new(&run(2000, 300_000))).unwrap_err().0.contains("1 ms on average")
        );
    }

    #[test]
    fn a_single_long_fork_is_named_for_itself() {
        let run = run(2, 260_000_000);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!((260_000_000..270_000_000).contains(&claim.longest_ns), "{}", claim.longest_ns);
    }
}
