//! ksm-cow: stores to pages that KSM has merged copy them.
//!
//! Kernel samepage merging replaces equal pages of memory that was offered to it
//! (MADV_MERGEABLE, usually guests of an emulator) by one write-protected page. The next store to
//! any of them is a page fault that copies it, as after a fork, but without any fork.
//!
//! # Evidence
//!
//! CPU samples within page faults that copy a page (wp_page_copy), in a process of which the kernel
//! says that pages are merged (ksm_merging_pages), or that it goes through pages of the process
//! (ksm_rmap_items) and copied some that were merged (cow_ksm). Copies after a fork look the same:
//! whether the process forked is looked at.
//!
//! # Without whylag
//!
//!     grep . /sys/kernel/mm/ksm/{run,pages_shared,pages_sharing,full_scans}
//!     cat /proc/PID/ksm_merging_pages
//!     perf record -g -p PID -- sleep 5           # CPU time under wp_page_copy, or do_wp_page
//!
//! # Sources
//!
//! Documentation/admin-guide/mm/ksm.rst; mm/ksm.c; madvise(2) (MADV_MERGEABLE).

use model::{Counter, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults;
use crate::text::{count, counted, duration};

pub const CAUSE: Cause = Cause {
    id: ids::KSM_COW,
    title: "stores to pages that KSM merged copy them",
    fix: "Offer for merging only what is rarely written (no MADV_MERGEABLE on working memory; for \
          guests mem-merge=off), or slow down or stop KSM (pages_to_scan, sleep_millisecs, run in \
          /sys/kernel/mm/ksm).",
    reproduce: "mysteries/bin/ksm-cow-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

const MERGED: &str = "process.ksm_merging_pages";
/// Of all processes: before 5.19 the kernel says no more.
const SHARING: &str = "ksm.pages_sharing";
/// Of all processes. It only grows: at both looks all may be copied that was merged in between.
const COPIES: &str = "vm.ksm_copies";
/// A process that offered none has copies for another reason, whatever others of the host do.
const OFFERED: &str = "process.ksm_offered_pages";

fn examine(case: &Case) -> Verdict {
    let time = page_faults::copied_pages(case);
    let own = case.run.counter(MERGED);
    let Some(merged) = own.or_else(|| case.run.counter(SHARING)) else {
        return Err(Absent("whether KSM merges its pages could not be read".to_owned()));
    };
    let most = merged.first.max(merged.last);
    let offers = case.run.counter(OFFERED).is_some_and(|pages| pages.first.max(pages.last) > 0);
    let copies = case.run.counter(COPIES).filter(|_| offers).map_or(0, Counter::growth);
    if (most == 0 && copies == 0) || time.samples == 0 {
        return Err(Absent(format!(
            "{} merged by KSM, {} copying shared pages",
            counted(most, "page"),
            duration(time.ns())
        )));
    }
    if let Some(ordinary) = page_faults::ordinary(case, time.ns()) {
        return Err(Absent(ordinary));
    }

    let process = case.main_process(|account| time.accounts.get(account) > 0).unwrap_or(0);
    let title = format!("{} writes to pages that KSM merged", case.process_name(process));
    let mut claim = Claim::new(title, time.accounts.clone(), time.samples);
    claim.mechanism(format!(
        "a store to a merged page copies it in a page fault: {} on a CPU",
        duration(time.ns())
    ));
    let whose = if own.is_some() { "of the process" } else { "of all processes" };
    claim.trigger(if most > 0 {
        format!("up to {} {whose} were merged by KSM", counted(most, "page"))
    } else {
        format!("{} of all processes, merged by KSM, were copied", counted(copies, "page"))
    });
    claim.saw(
        format!("{} were in such faults", case.samples_in_words(&time)),
        "on-CPU samples under wp_page_copy",
    );
    claim.saw(
        format!("merged pages: {} at first, {} at last", count(merged.first), count(merged.last)),
        &merged.source,
    );
    if own.is_none() || most == 0 {
        claim.doubt(0.8, "which processes the merged pages are of is not known");
    }
    if let Some(scans) = case.run.counter("ksm.full_scans") {
        claim
            .saw(format!("KSM went {} times over all it may merge", scans.growth()), &scans.source);
    }
    let path = page_faults::copy_in_words(case);
    claim.saw_if(path.map(|p| format!("written in {p}")), "most frequent sampled path");
    if page_faults::forks(case) == 0 {
        claim.rule_out(ids::FORK_COW, "no watched process forked".to_owned());
    } else {
        claim.doubt(0.7, "it also forked: part of the copies may be due to that");
    }
    let new = page_faults::new_pages(case);
    claim.rule_out(
        ids::FIRST_TOUCH,
        format!("faults on memory never touched took {}", duration(new.ns())),
    );
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Metric, Syscall};

    fn copying() -> RunBuilder {
        let fault = ["wp_page_copy", "do_wp_page", "handle_mm_fault", "asm_exc_page_fault"];
        RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &fault, 1000)
            .sampled_path(10, USER, &[], 1000)
    }

    #[test]
    fn claimed_when_pages_were_merged() {
        let run = copying().counter(MERGED, 0, 16_000).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.total(), SECOND);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "fork-cow"));
    }

    #[test]
    fn a_fork_besides_is_a_doubt() {
        let clone = Metric::Syscall(Syscall::named("clone").unwrap());
        let run = copying().counter(MERGED, 0, 16_000).values(clone, 5, &[1000]).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn pages_that_may_be_of_others_are_a_doubt() {
        let run = copying().counter(SHARING, 0, 16_000).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn pages_that_were_merged_and_copied_between_two_looks_are_known() {
        let run = |offered: u64, copies: u64| {
            let run = copying().counter(MERGED, 0, 0).counter(OFFERED, 0, offered);
            run.counter(COPIES, 5, 5 + copies).build()
        };
        assert_eq!(examine(&Case::new(&run(16_000, 16_000))).unwrap().doubts.len(), 1);
        assert!(examine(&Case::new(&run(16_000, 0))).is_err());
        // Those of a virtual machine beside it.
        assert!(examine(&Case::new(&run(0, 16_000))).is_err());
    }

    #[test]
    fn not_claimed_when_nothing_was_merged() {
        assert!(examine(&Case::new(&copying().counter(MERGED, 0, 0).build())).is_err());
    }
}
