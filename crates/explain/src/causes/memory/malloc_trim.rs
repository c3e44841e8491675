//! malloc-trim: the allocator gives memory back to the kernel and takes it again.
//!
//! glibc returns the end of the heap as soon as 128 KiB of it are free (M_TRIM_THRESHOLD), and maps
//! and unmaps each block above 128 KiB at first (M_MMAP_THRESHOLD). A program whose use goes up and
//! down pays for each turn: the call, and a page fault for each page that it needs again.
//!
//! # Evidence
//!
//! CPU time in brk, munmap and madvise, without what they themselves fault in (MADV_POPULATE_WRITE,
//! locked memory), and of the page faults that make new pages: both together are claimed if giving
//! back takes a twentieth of what getting takes, or more. Unmapping a page takes about a tenth of
//! what it takes to get one, so pages then go as often as they come. The way out of a fault, with interrupts off, looks
//! like the program's own work in samples: what is claimed is up to a quarter too small (virtual machine).
//!
//! # Without whylag
//!
//!     strace -f -c -e trace=brk,munmap,madvise,mmap -p PID
//!     ltrace -f -e malloc+free -p PID            # sizes, for a short time: it is slow
//!     perf record -e page-faults -c 1 -g -p PID -- sleep 5
//!
//! # Sources
//!
//! mallopt(3); malloc_trim(3); the glibc manual, Memory Allocation Tunables.

use model::{Account, RecorderPart, Syscall};

use crate::case::Case;
use crate::case::mmap_holders::is_mmap_lock;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::page_faults::{self, GivenBack};
use crate::text::{count, counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::MALLOC_TRIM,
    title: "memory is given back to the kernel and taken again",
    fix: "Let the allocator keep it: mallopt or GLIBC_TUNABLES with a higher \
          glibc.malloc.trim_threshold, top_pad and mmap_threshold; or keep buffers in the program; \
          or use an allocator that returns memory slowly.",
    reproduce: "mysteries/bin/malloc-trim-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::SystemCalls, RecorderPart::Samples])
        .and_kernel_symbols()
        .and_histograms(),
    look_alikes: &[LookAlike {
        cause: ids::MMAP_LOCK,
        tell_apart: "raise glibc.malloc.trim_threshold and mmap_threshold (GLIBC_TUNABLES) and \
                         record again: waiting for mmap_lock that stays is not the allocator's",
        mutual: true,
    }],
    symptom: false,
    examine,
};

fn examine(case: &Case) -> Verdict {
    let new = page_faults::new_pages(case);
    let back = GivenBack::of(case);
    if !back.is_as_much_as(&new) || new.samples == 0 {
        return Err(Absent(format!(
            "memory was given back by {} (brk, munmap, madvise) in {} on a CPU, and new pages took \
             {} in page faults",
            case.calls_in_words(back.calls, "call"),
            duration(back.accounts.total()),
            duration(new.ns())
        )));
    }

    let mut lost = back.accounts.clone();
    lost.merge(&new.accounts);
    if let Some(ordinary) = page_faults::ordinary(case, lost.total()) {
        return Err(Absent(ordinary));
    }
    let calls = case.main_process(|account| back.accounts.get(account) > 0).unwrap_or(0);
    let title =
        format!("{} gives memory back to the kernel and takes it again", case.process_name(calls));
    let mut claim = Claim::new(title, lost, back.calls);
    claim.mechanism(format!(
        "each turn unmaps pages ({} in {}) and faults them in again ({} of page faults on a CPU)",
        duration(back.accounts.total()),
        case.calls_in_words(back.calls, "call"),
        duration(new.ns())
    ));
    claim.trigger(
        "the allocator returns what is free at once, and the program soon needs as much again"
            .to_owned(),
    );
    for (name, n, ns) in by_call(case, &back) {
        claim.saw(
            format!(
                "{name}: {}, {} on a CPU{}",
                case.calls_in_words(n, "call"),
                duration(ns),
                caller_in_words(case, name)
            ),
            "system call histogram and account",
        );
    }
    claim.saw(
        format!(
            "{} in page faults that make a new page ({}); the kernel counted {}",
            duration(new.ns()),
            counted(new.samples, "sample"),
            counted(page_faults::minor(case), "minor fault")
        ),
        "on-CPU samples under do_anonymous_page, min_flt",
    );
    let path = page_faults::new_page_in_words(case);
    claim.saw_if(path.map(|p| format!("touched in {p}")), "most frequent sampled path");
    let calls = by_call(case, &back).first().map_or("brk", |(name, ..)| *name);
    let in_call = Syscall::named(calls).map(Account::Syscall);
    let path = case.path_in_words(&[], |p| p.sampled && Some(p.account) == in_call);
    claim.saw_if(path.map(|p| format!("given back in {p}")), "most frequent sampled path");
    rule_out(case, &back, new.ns(), &mut claim);
    Ok(claim)
}

/// Calls that give back, with their number and time on a CPU, most expensive first.
fn by_call(case: &Case, back: &GivenBack) -> Vec<(&'static str, u64, u64)> {
    let row = |name: &'static str| {
        let account = Syscall::named(name).map(Account::Syscall)?;
        let ns = back.accounts.get(account);
        (ns > 0).then(|| (name, case.calls(name).0, ns))
    };
    let mut rows: Vec<_> = ["brk", "munmap", "madvise"].into_iter().filter_map(row).collect();
    rows.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    rows
}

/// `, 98 % of it in allocator-0 (tid 12)`.
fn caller_in_words(case: &Case, call: &str) -> String {
    let Some(account) = Syscall::named(call).map(Account::Syscall) else { return String::new() };
    let callers = case.threads_in(|other| other == account);
    let Some(most) = callers.max_by_key(|thread| thread.accounts.get(account)) else {
        return String::new();
    };
    let part = percent(most.accounts.get(account), case.accounts.get(account));
    format!(", {part} of it in {} (tid {})", most.comm, most.tid)
}

fn rule_out(case: &Case, back: &GivenBack, new_ns: u64, claim: &mut Claim) {
    claim.rule_out(
        ids::FIRST_TOUCH,
        format!(
            "memory is not new: giving it back took {} on a CPU against {} to get it",
            duration(back.accounts.total()),
            duration(new_ns)
        ),
    );
    let waited = case.accounts.sum_of(is_mmap_lock);
    if waited < new_ns {
        claim.rule_out(
            ids::MMAP_LOCK,
            format!("waiting for the mmap_lock took {} in all", duration(waited)),
        );
    }
    let copied = page_faults::copied_pages(case);
    claim.rule_out(
        ids::FORK_COW,
        format!(
            "copying shared pages took {} ({} samples)",
            duration(copied.ns()),
            count(copied.samples)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Metric;

    const FAULT: [&str; 4] =
        ["do_anonymous_page", "handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"];

    fn trimming(brk_ns: u64) -> RunBuilder {
        let brk = Syscall::named("brk").unwrap();
        RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND), (Account::Syscall(brk), brk_ns)])
            .sampled_path(10, USER, &FAULT, 600)
            .sampled_path(10, USER, &[], 1400)
            .values(Metric::Syscall(brk), 5, &[10_000; 100])
    }

    #[test]
    fn claimed_for_the_calls_and_the_faults() {
        let run = trimming(SECOND / 4).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.total(), SECOND / 4 + SECOND * 6 / 10);
        assert!(claim.ruled_out.iter().any(|r| r.cause == "first-touch"));
    }

    #[test]
    fn not_claimed_when_hardly_anything_goes_back() {
        let run = trimming(SECOND / 1000).build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn a_call_that_gets_memory_does_not_give_it_back() {
        let populating = |samples: u64| {
            let madvise = Account::Syscall(Syscall::named("madvise").unwrap());
            trimming(SECOND / 1000)
                .thread(11, 10, &[(madvise, SECOND / 2)])
                .sampled_path(10, madvise, &["clear_page_erms", "handle_mm_fault"], samples)
                .sampled_path(10, madvise, &["zap_pte_range"], 500 - samples)
                .build()
        };
        assert!(examine(&Case::new(&populating(500))).is_err());
        let madvise = Account::Syscall(Syscall::named("madvise").unwrap());
        let run = populating(100);
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(madvise), SECOND / 2 / 5 * 4);
    }

    #[test]
    fn a_call_that_pages_out_does_not_give_back() {
        let madvise = Account::Syscall(Syscall::named("madvise").unwrap());
        let paging = ["shrink_folio_list", "madvise_cold_or_pageout_pte_range"];
        let run = trimming(SECOND / 1000)
            .thread(11, 10, &[(madvise, SECOND / 2)])
            .sampled_path(10, madvise, &paging, 500)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn giving_back_without_taking_is_not_this() {
        let munmap = Syscall::named("munmap").unwrap();
        let run = RunBuilder::new()
            .thread(10, 10, &[(Account::Syscall(munmap), SECOND)])
            .values(Metric::Syscall(munmap), 5, &[10_000; 100])
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
