//! first-touch: memory is used for the first time where time matters.
//!
//! What malloc or mmap gives is an address only. The first store to each of its pages is a page
//! fault, in which the kernel finds a page, clears it and maps it: about a microsecond for 4 KiB.
//!
//! # Evidence
//!
//! CPU samples within page faults that make a new page (do_anonymous_page); the kernel's count of minor
//! faults; the growth of the process's memory. Where the program gives as much memory back, it is
//! malloc-trim. The way out of a fault, with interrupts off, looks
//! like the program's own work in samples: what is claimed is up to a quarter too small (virtual machine).
//!
//! # Without whylag
//!
//!     ps -o pid,min_flt,rss -p PID               # read it twice
//!     perf record -e page-faults -c 1 -g -p PID -- sleep 5
//!     perf record -g -p PID -- sleep 5           # CPU time under do_anonymous_page
//!
//! # Sources
//!
//! mm/memory.c (do_anonymous_page); madvise(2) (MADV_POPULATE_WRITE).

use model::units::bytes;
use model::{Account, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults::{self, GivenBack};
use crate::text::{counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::FIRST_TOUCH,
    title: "memory is touched for the first time where time matters",
    fix: "Touch the memory before: fill buffers at start, use MAP_POPULATE or \
          madvise(MADV_POPULATE_WRITE) outside the critical path, keep and reuse buffers, or use \
          huge pages (one fault for 2 MiB).",
    reproduce: "mysteries/bin/first-touch-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

fn examine(case: &Case) -> Verdict {
    let time = page_faults::new_pages(case);
    if time.samples == 0 {
        return Err(Absent("no sample was in a page fault that makes a new page".to_owned()));
    }
    if let Some(ordinary) = page_faults::ordinary(case, time.ns()) {
        return Err(Absent(ordinary));
    }
    let back = GivenBack::of(case);
    if back.is_as_much_as(&time) {
        return Err(Absent(format!(
            "{} gave memory back in {} on a CPU: pages are taken again and again (malloc-trim), \
             not for the first time",
            case.calls_in_words(back.calls, "call"),
            duration(back.accounts.total())
        )));
    }

    let process = case.main_process(|account| time.accounts.get(account) > 0).unwrap_or(0);
    let faults = page_faults::minor(case);
    let title = format!("{} touches fresh memory as it works", case.process_name(process));
    let mut claim = Claim::new(title, time.accounts.clone(), time.samples);
    claim.mechanism(format!(
        "the first store to a page of memory is a page fault that finds, clears and maps a page: \
         {} on a CPU",
        duration(time.ns())
    ));
    claim.trigger("its threads keep going on to memory that nobody has touched before".to_owned());
    claim.saw(
        format!("{} were in such faults: {}", case.samples_in_words(&time), duration(time.ns())),
        "on-CPU samples under do_anonymous_page",
    );
    claim.saw(
        format!("the kernel counted {} of these threads", counted(faults, "minor fault")),
        "min_flt of each thread",
    );
    for name in ["process.rss_kb", "process.vm_size_kb"] {
        if let Some(counter) = case.run.counter(name).filter(|c| c.growth() > 0) {
            let [first, last] =
                [counter.first, counter.last].map(|kb| bytes(kb.saturating_mul(1024)));
            claim.saw(format!("{name} grew from {first} to {last}"), &counter.source);
        }
    }
    let path = page_faults::new_page_in_words(case);
    claim.saw_if(path.map(|p| format!("touched in {p}")), "most frequent sampled path");
    rule_out(case, &back, time.ns(), &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, back: &GivenBack, ns: u64, claim: &mut Claim) {
    claim.rule_out(
        ids::MALLOC_TRIM,
        format!(
            "brk, munmap and madvise took {} on a CPU against {} in the faults: what was touched \
             is kept",
            duration(back.accounts.total()),
            duration(ns)
        ),
    );
    let copied = page_faults::copied_pages(case);
    claim.rule_out(
        ids::FORK_COW,
        format!(
            "copying shared pages took {}, {} of this",
            duration(copied.ns()),
            percent(copied.ns(), ns)
        ),
    );
    let major = case.accounts.get(Account::Blocked(model::Blocked::FaultMajor));
    claim.rule_out(
        ids::FILE_MAJOR_FAULT,
        format!("these faults did not wait for a disk; those that did took {}", duration(major)),
    );
    claim.rule_out(
        ids::MEMCG_RECLAIM,
        format!(
            "faults that had to reclaim memory first took {}",
            duration(
                case.time_through(&["try_to_free_mem_cgroup_pages", "try_to_free_pages"], |_| true)
                    .ns()
            )
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Metric, Syscall};

    const FAULT: [&str; 4] =
        ["do_anonymous_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];

    fn touching() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &FAULT, 600)
            .sampled_path(10, USER, &[], 1400)
    }

    #[test]
    fn claimed_for_the_time_in_the_faults() {
        let run = touching().build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(USER), SECOND * 6 / 10);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "malloc-trim"));
    }

    #[test]
    fn not_claimed_when_the_memory_is_given_back() {
        let brk = Syscall::named("brk").unwrap();
        let run = touching()
            .thread(11, 10, &[(Account::Syscall(brk), SECOND / 5)])
            .values(Metric::Syscall(brk), 5, &[10_000; 100])
            .build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("malloc-trim"));
    }

    #[test]
    fn claimed_where_the_compiler_made_the_new_page_a_part_of_its_caller() {
        // As on Debian's Linux 6.1.
        let zeroing = [
            "clear_page_erms",
            "get_page_from_freelist",
            "__alloc_pages",
            "vma_alloc_folio",
            "__handle_mm_fault",
            "handle_mm_fault",
            "asm_exc_page_fault",
        ];
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &zeroing, 600)
            .sampled_path(10, USER, &["do_user_addr_fault", "asm_exc_page_fault"], 200)
            .sampled_path(10, USER, &[], 200)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(USER), SECOND * 8 / 10);
        let copying = ["clear_page_erms", "wp_page_copy", "handle_mm_fault", "asm_exc_page_fault"];
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &copying, 900)
            .sampled_path(10, USER, &[], 100)
            .build();
        assert!(examine(&Case::new(&run)).is_err(), "a copy is no first touch");
    }

    #[test]
    fn other_faults_are_not_this() {
        let wp = ["wp_page_copy", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &wp, 500)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
