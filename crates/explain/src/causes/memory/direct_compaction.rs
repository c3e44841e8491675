//! direct-compaction: a thread that needs a large piece of memory moves others' pages to make it.
//!
//! Huge pages, large network buffers and some kernel stacks and tables have to be contiguous. Where free
//! memory is in small pieces, the thread that asks goes through a part of memory, copies pages to other
//! places and changes the mappings of whoever uses them, until a piece is free: milliseconds, and on a
//! CPU. It may do so in vain, and then takes small pages after all.
//!
//! # Evidence
//!
//! CPU samples and sleeps within the compaction of memory (compact_zone), in watched threads; the
//! kernel's own spans of it (mm_compaction_begin and _end), and its counts. What kcompactd and
//! khugepaged compact in the background costs the threads nothing of this.
//!
//! # Without whylag
//!
//!     grep -E 'compact_|thp_fault' /proc/vmstat  # read it twice; compact_stall counts these
//!     cat /proc/buddyinfo                        # free pieces by size, the largest at the right
//!     cat /sys/kernel/mm/transparent_hugepage/defrag
//!
//! # Sources
//!
//! mm/compaction.c; mm/page_alloc.c (__alloc_pages_direct_compact);
//! Documentation/admin-guide/mm/transhuge.rst (defrag).

use model::{Account, Metric, RecorderPart};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::DIRECT_COMPACTION,
    title: "allocating a large page compacts memory first",
    fix: "Do not wait for huge pages: 'defer' in /sys/kernel/mm/transparent_hugepage/defrag, no \
          MADV_HUGEPAGE on memory that is had and given back often. Reserve them at boot (hugetlbfs), \
          or touch the memory at start, while free memory is whole. Compact in the background: \
          vm.compaction_proactiveness, and more free memory (vm.min_free_kbytes).",
    reproduce: "whylag record -- COMMAND, with MADV_HUGEPAGE on a host whose free memory is in small \
                pieces",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::FIRST_TOUCH,
            tell_apart: "read compact_stall in /proc/vmstat twice: touching new memory alone does \
                         not raise it",
            mutual: false,
        },
        LookAlike {
            cause: ids::DIRECT_RECLAIM,
            tell_apart: "read compact_stall and allocstall in /proc/vmstat twice: memory in small \
                         pieces raises the first, too little memory the second",
            mutual: false,
        },
    ],
    symptom: false,
    examine,
};

/// Where pages are moved together.
const COMPACTION: [&str; 4] =
    ["compact_zone", "compact_zone_order", "try_to_compact_pages", "__alloc_pages_direct_compact"];
/// Who asks for large pieces, and how that is said.
const ASKING: [(&[&str], &str); 4] = [
    (&["do_huge_pmd_anonymous_page", "vma_alloc_anon_folio_pmd"], "huge pages in page faults"),
    (&["hugetlb_fault", "hugetlb_no_page", "alloc_fresh_hugetlb_folio"], "pages of hugetlbfs"),
    (&["alloc_skb_with_frags", "skb_page_frag_refill", "packet_set_ring"], "network buffers"),
    (&["sysctl_compaction_handler", "compact_nodes", "compact_store"], "it was told to compact"),
];
/// Counts of the kernel that belong to it.
const COUNTS: [(&str, &str); 2] =
    [("vm.compact_stalls", "allocation"), ("vm.compact_failures", "compaction in vain")];

fn examine(case: &Case) -> Verdict {
    let time = case.time_through(&COMPACTION, |_| true);
    if time.ns() == 0 {
        return Err(Absent("no thread was seen compacting memory".to_owned()));
    }
    let process = case.main_of(&COMPACTION, |_| true).unwrap_or(0);
    let name = case.process_name(process);
    let title = format!("{name} compacts memory to have a large piece of it");
    let mut claim = Claim::new(title, time.accounts.clone(), time.observations());
    let asleep = time.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    claim.mechanism(format!(
        "pages of others are moved until a large enough piece is free: {} on a CPU ({}), {} asleep",
        duration(time.ns().saturating_sub(asleep)),
        counted(time.samples, "sample"),
        duration(asleep)
    ));
    claim.trigger(trigger(case));
    let spans = case.histogram(&Metric::Compaction);
    claim.saw_if(
        spans.map(|spans| format!("compactions, from begin to end: {}", quantiles(&spans))),
        "mm_compaction_begin, mm_compaction_end",
    );
    let path = case.path_in_words(&COMPACTION, |_| true);
    claim.saw_if(path.map(|path| format!("compacts in {path}")), "kernel stack of most of it");
    for (name, what) in COUNTS {
        if let Some(counter) = case.run.counter(name).filter(|counter| counter.growth() > 0) {
            let text = format!("{} of all threads ({name})", counted(counter.growth(), what));
            claim.saw(text, &counter.source);
        }
    }
    Ok(claim)
}

/// Who asked, by the largest part of it.
fn trigger(case: &Case) -> String {
    let asked = ASKING.iter().map(|(functions, what)| {
        let time = case.time_through(functions, |path| case.passes(path, &COMPACTION));
        (time.ns(), *what)
    });
    match asked.max_by_key(|(ns, _)| *ns) {
        Some((ns, what)) if ns > 0 => format!("{what}: {} of it", duration(ns)),
        _ => "what the large pieces were for is in the stack".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const HUGE: [&str; 4] = [
        "isolate_migratepages_block",
        "compact_zone",
        "__alloc_pages_direct_compact",
        "do_huge_pmd_anonymous_page",
    ];

    #[test]
    fn claimed_with_who_asked_and_the_kernels_counts() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &HUGE, 1000)
            .sampled_path(10, USER, &HUGE[1..3], 200)
            .sampled_path(10, USER, &[], 800)
            .values(Metric::Compaction, 5, &[2_000_000; 400])
            .counter("vm.compact_stalls", 5, 405)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.waits), (6 * SECOND / 5, 1200));
        assert_eq!(claim.chain[1].text, "huge pages in page faults: 1.00 s of it");
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("400 allocations of all")));
    }

    #[test]
    fn not_claimed_of_huge_pages_that_were_there() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["clear_huge_page", "do_huge_pmd_anonymous_page"], 1000)
            .counter("vm.compact_stalls", 5, 405)
            .build();
        assert!(examine(&Case::new(&run)).is_err(), "the stalls are those of others");
    }
}
