//! numa-balancing: NUMA balancing unmaps pages to see by page faults who uses them, and migrates them.
//!
//! On a machine with several memory nodes the kernel unmaps pieces of each process's memory from time to
//! time. The next access is a page fault that says which CPU uses the page; if it is on another node,
//! the page is copied there. That pays off where threads stay near their memory, and is wasted where
//! threads of several nodes use the same pages, or are moved about themselves. What an access to a
//! remote node costs by itself is not seen: it is a slower instruction, not a wait.
//!
//! # Evidence
//!
//! CPU samples and sleeps within the faults (do_numa_page) and the unmapping (task_numa_work), in
//! watched threads; the kernel's counts of such faults and of pages moved.
//!
//! # Without whylag
//!
//!     grep -E 'numa_(hint_faults|pages_migrated|pte_updates)' /proc/vmstat    # read it twice
//!     numastat -p PID
//!     cat /proc/sys/kernel/numa_balancing
//!
//! # Sources
//!
//! mm/memory.c (do_numa_page); kernel/sched/fair.c (task_numa_work);
//! Documentation/admin-guide/sysctl/kernel.rst (numa_balancing).

use model::RecorderPart;

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration};

pub const CAUSE: Cause = Cause {
    id: ids::NUMA_BALANCING,
    title: "NUMA balancing makes threads fault, and moves pages between nodes",
    fix: "Bind threads and memory to one node (numactl --cpunodebind --membind, cpuset.mems): memory \
          with a policy of its own is left alone. Or switch it off (kernel.numa_balancing = 0), or use \
          fewer, larger pages.",
    reproduce: "whylag record -- COMMAND, with threads of several memory nodes that use the same \
                pages",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::FIRST_TOUCH,
        tell_apart: "read numa_hint_faults in /proc/vmstat twice: touching new memory does not raise \
                     it",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// Faults on memory that was taken away, and the taking away.
const BALANCING: [&str; 6] = [
    "do_numa_page",
    "do_huge_pmd_numa_page",
    "task_numa_work",
    "change_prot_numa",
    "migrate_misplaced_folio",
    "migrate_misplaced_page",
];
/// Of it: copying pages to another node.
const MOVING: [&str; 2] = ["migrate_misplaced_folio", "migrate_misplaced_page"];
const FAULTS: &str = "vm.numa_hint_faults";
const MOVED: &str = "vm.numa_pages_migrated";

fn examine(case: &Case) -> Verdict {
    let time = case.time_through(&BALANCING, |_| true);
    if time.ns() == 0 {
        return Err(Absent("no thread was seen in a fault of NUMA balancing".to_owned()));
    }
    let process = case.main_of(&BALANCING, |_| true).unwrap_or(0);
    let name = case.process_name(process);
    let title = format!("{name} pays for NUMA balancing of its memory");
    let mut claim = Claim::new(title, time.accounts.clone(), time.observations());
    let moving = case.time_through(&MOVING, |_| true).ns();
    claim.mechanism(format!(
        "pages are unmapped to see who uses them, and moved to another node: {} in all, {} of it in \
         moving them",
        duration(time.ns()),
        duration(moving)
    ));
    let growth = |name: &str| case.run.counter(name).map(|counter| counter.growth());
    claim.trigger(match (growth(FAULTS), growth(MOVED)) {
        (Some(faults), Some(moved)) => format!(
            "on the host {} by which the kernel looks, and {} moved",
            counted(faults, "fault"),
            counted(moved, "page")
        ),
        _ => "the host's counts of such faults were not recorded".to_owned(),
    });
    claim.saw(
        format!("{} were in it, and {} sleeps", case.samples_in_words(&time), count(time.sleeps)),
        "on-CPU samples and sleeps under do_numa_page, task_numa_work and migrate_misplaced_folio",
    );
    let path = case.path_in_words(&BALANCING, |_| true);
    claim.saw_if(path.map(|path| format!("in {path}")), "kernel stack of most of it");
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const MOVE: [&str; 4] =
        ["migrate_pages", "migrate_misplaced_folio", "do_numa_page", "handle_mm_fault"];

    #[test]
    fn claimed_with_what_moving_took_of_it() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &MOVE, 500)
            .sampled_path(10, USER, &MOVE[2..], 300)
            .sampled_path(10, USER, &["change_protection", "task_numa_work"], 200)
            .sampled_path(10, USER, &[], 1000)
            .counter(FAULTS, 0, 20_000)
            .counter(MOVED, 0, 5000)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.waits), (SECOND, 1000));
        assert!(claim.chain[0].text.contains("1.00 s in all, 500 ms of it in moving them"));
        assert!(claim.chain[1].text.contains("20,000 faults"), "{:?}", claim.chain);
    }

    #[test]
    fn not_claimed_of_other_faults() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["do_anonymous_page", "handle_mm_fault"], 500)
            .counter(FAULTS, 0, 20_000)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
