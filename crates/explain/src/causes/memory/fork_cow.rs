//! fork-cow: after a fork, the first store to each page copies it.
//!
//! fork() shares all private memory between parent and child, write-protected. Whoever stores to a
//! page first gets a copy of it in a page fault. A process that forks to save a snapshot of its
//! memory, or only to run another program, pays that for each page it goes on to change.
//!
//! # Evidence
//!
//! CPU samples within page faults that copy a page (wp_page_copy); the calls of fork and clone of the process; that none of its pages is merged by KSM,
//! as merged pages are copied in the same function. The way out of a fault, with interrupts off, looks
//! like the program's own work in samples: what is claimed is up to a quarter too small (virtual machine).
//!
//! # Without whylag
//!
//!     strace -f -e trace=fork,clone,clone3 -p PID
//!     perf record -g -p PID -- sleep 5           # CPU time under wp_page_copy, or do_wp_page
//!     bpftrace -e 'kprobe:wp_page_copy { @[comm] = count(); }'   # with CONFIG_KPROBES, if it is not inlined
//!
//! # Sources
//!
//! fork(2); mm/memory.c (wp_page_copy).

use model::RecorderPart;

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults;
use crate::text::{counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::FORK_COW,
    title: "stores after a fork copy pages",
    fix: "Run other programs with posix_spawn or vfork, which share nothing; fork a small helper \
          process at the start and let that one fork; save memory from a thread, or give the \
          child only what it needs (MADV_DONTFORK).",
    reproduce: "mysteries/bin/fork-cow-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Samples])
        .and_kernel_symbols()
        .and_histograms(),
    look_alikes: &[
        LookAlike {
            cause: ids::FIRST_TOUCH,
            tell_apart: "sample kernel stacks ('perf record -g -p PID'): wp_page_copy (or \
                         do_wp_page) copies a shared page, do_anonymous_page makes a new one",
            mutual: true,
        },
        LookAlike {
            cause: ids::MALLOC_TRIM,
            tell_apart: "count the calls ('strace -f -c -e \
                         trace=fork,clone,clone3,brk,munmap,madvise -p PID'): without a fork \
                         nothing is copied, without the others nothing is given back",
            mutual: true,
        },
        LookAlike {
            cause: ids::KSM_COW,
            tell_apart: "read pages_shared in /sys/kernel/mm/ksm and see whether the process \
                         forked: KSM merges without any fork",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

fn examine(case: &Case) -> Verdict {
    let time = page_faults::copied_pages(case);
    if time.samples == 0 {
        return Err(Absent("no sample was in a page fault that copies a page".to_owned()));
    }
    if let Some(ordinary) = page_faults::ordinary(case, time.ns()) {
        return Err(Absent(ordinary));
    }
    let merged = case.run.counter("process.ksm_merging_pages").map_or(0, |counter| counter.last);
    if merged > 0 {
        return Err(Absent(format!(
            "{} of the process are merged by KSM: stores copy them without any fork (ksm-cow)",
            counted(merged, "page")
        )));
    }
    let forks = page_faults::forks(case);
    if forks == 0 {
        return Err(Absent(format!(
            "pages were copied for {}, but no watched process forked meanwhile",
            duration(time.ns())
        )));
    }

    let process = case.main_process(|account| time.accounts.get(account) > 0).unwrap_or(0);
    let title = format!("{} copies pages that a fork has shared", case.process_name(process));
    let mut claim = Claim::new(title, time.accounts.clone(), time.samples);
    claim.mechanism(format!(
        "a store to a page that is shared since a fork copies it in a page fault: {} on a CPU",
        duration(time.ns())
    ));
    claim.trigger(format!(
        "{}, after which the process goes on to write to its memory",
        counted(forks, "fork")
    ));
    evidence(case, &time, &mut claim);
    rule_out(case, &time, &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, time: &PathTime, claim: &mut Claim) {
    let new = page_faults::new_pages(case);
    let against = format!("{} of these", percent(new.ns(), time.ns()));
    if new.ns() < time.ns() {
        claim.rule_out(
            ids::FIRST_TOUCH,
            format!("faults on memory never touched took {}, {against}", duration(new.ns())),
        );
    }
    let source = case.run.counter("process.ksm_merging_pages");
    match source {
        Some(_) => claim.rule_out(ids::KSM_COW, "none of its pages is merged by KSM".to_owned()),
        None => claim.doubt(0.9, "whether KSM merged its pages could not be read (ksm-cow)"),
    }
}

fn evidence(case: &Case, time: &PathTime, claim: &mut Claim) {
    claim.saw(
        format!("{} were in such faults: {}", case.samples_in_words(time), duration(time.ns())),
        "on-CPU samples under wp_page_copy",
    );
    page_faults::saw_fork_calls(case, claim);
    claim.saw(
        format!("the kernel counted {}", counted(page_faults::minor(case), "minor fault")),
        "min_flt of each thread",
    );
    let path = page_faults::copy_in_words(case);
    claim.saw_if(path.map(|p| format!("written in {p}")), "most frequent sampled path");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Metric, Syscall};

    const FAULT: [&str; 5] =
        ["wp_page_copy", "do_wp_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];

    fn copying() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &FAULT, 500)
            .sampled_path(10, USER, &[], 1500)
    }

    fn forks(builder: RunBuilder) -> RunBuilder {
        builder.values(Metric::Syscall(Syscall::named("clone").unwrap()), 5, &[5_000_000; 4])
    }

    #[test]
    fn claimed_for_the_copies_after_a_fork() {
        let run = forks(copying()).counter("process.ksm_merging_pages", 0, 0).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(USER), SECOND / 2);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "ksm-cow") && claim.doubts.is_empty());
    }

    #[test]
    fn one_copy_does_not_stand_for_faults_of_unknown_kind() {
        let unknown = ["__handle_mm_fault", "handle_mm_fault", "asm_exc_page_fault"];
        let run = forks(RunBuilder::new().thread(10, 10, &[(USER, SECOND)]))
            .sampled_path(10, USER, &FAULT, 1)
            .sampled_path(10, USER, &unknown, 899)
            .sampled_path(10, USER, &[], 100)
            .build();
        let absent = examine(&Case::new(&run)).unwrap_err();
        assert!(absent.0.contains("ordinarily pay"), "{}", absent.0);
    }

    #[test]
    fn not_claimed_without_a_fork() {
        assert!(examine(&Case::new(&copying().build())).unwrap_err().0.contains("forked"));
    }

    #[test]
    fn calls_that_made_threads_are_no_forks() {
        let workers = (11..15).fold(copying(), |run, tid| run.thread(tid, 10, &[(USER, SECOND)]));
        let run = forks(workers).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("forked"));
    }

    #[test]
    fn not_claimed_for_pages_that_ksm_merged() {
        let run = forks(copying()).counter("process.ksm_merging_pages", 0, 4000).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("ksm-cow"));
    }
}
