//! swap-in: memory of the program is in swap, and what touches it waits until it is read back.
//!
//! Pages of memory that is no file, not touched for a while, go to the swap device when memory is short,
//! on the host or in a memory cgroup. The next access is a page fault that reads the page back from the
//! disk (or unpacks it, zram and zswap), in the thread that touched it, one page or a few at a time. A
//! large heap that was swapped out takes minutes to come back. Memory of a file is another cause
//! (file-major-fault), and so is what the same thread does to make room for the page (direct-reclaim,
//! memcg-reclaim).
//!
//! # Evidence
//!
//! Sleeps and CPU samples within do_swap_page, or within the same for shared memory
//! (shmem_swapin_folio), but for reclaim in them; the kernel's count of pages read from swap.
//!
//! # Without whylag
//!
//!     grep VmSwap /proc/PID/status
//!     vmstat 1                                   # si
//!     perf record -g -p PID -- sleep 5           # do_swap_page, but not the sleeps
//!
//! # Sources
//!
//! mm/memory.c (do_swap_page); mm/swap_state.c; Documentation/admin-guide/sysctl/vm.rst (swappiness,
//! page-cluster).

use model::{Account, PathSum, RecorderPart};

use super::memcg_reclaim;
use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::SWAP_IN,
    title: "memory was swapped out, and what touches it reads it back",
    fix: "Keep in memory what has to be fast: mlock or mlockall, memory.swap.max = 0 or a higher \
          memory.low of its cgroup, a lower vm.swappiness, swapoff. Or use less memory, or have \
          more. Swap on zram instead of a disk makes each fault some hundred times shorter.",
    reproduce: "mysteries/bin/swap-in-faulty 5, in a machine that may have a swap device",
    needs: Needs::parts(&[RecorderPart::Threads]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::FILE_MAJOR_FAULT,
        tell_apart: "read pswpin in /proc/vmstat twice, and VmSwap in /proc/PID/status: pages of \
                     files are in neither",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// Where a fault finds that its page is in swap.
const SWAPPED: [&str; 3] = ["do_swap_page", "shmem_swapin_folio", "shmem_swapin_page"];
const READ: &str = "vm.swapped_in_pages";

/// Reading a page back, without making room for it.
fn is_reading(case: &Case, path: &PathSum) -> bool {
    !case.passes(path, &memcg_reclaim::RECLAIM) && !case.passes(path, &memcg_reclaim::HOST_RECLAIM)
}

fn examine(case: &Case) -> Verdict {
    let time = case.time_through(&SWAPPED, |path| is_reading(case, path));
    if time.ns() == 0 {
        let read = case.run.counter(READ).map_or(0, |counter| counter.growth());
        return Err(Absent(format!(
            "no thread was seen reading memory back from swap; the host read {}",
            counted(read, "page")
        )));
    }
    let process = case.main_of(&SWAPPED, |path| is_reading(case, path)).unwrap_or(0);
    let title = format!("{} reads its memory back from swap", case.process_name(process));
    let mut claim = Claim::new(title, time.accounts.clone(), time.observations());
    let asleep = time.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    claim.mechanism(format!(
        "a page that was swapped out is read back in the page fault that touches it: {} asleep in \
         {}, mean {}, longest {}; {} on a CPU ({})",
        duration(asleep),
        counted(time.sleeps, "sleep"),
        mean(asleep, time.sleeps),
        duration(time.max_ns),
        duration(time.ns().saturating_sub(asleep)),
        counted(time.samples, "sample")
    ));
    claim.trigger("its memory was swapped out while memory was short".to_owned());
    if let Some(read) = case.run.counter(READ).filter(|counter| counter.growth() > 0) {
        let pages = counted(read.growth(), "page");
        claim.saw(format!("{pages} read from swap by all threads of the host"), &read.source);
    }
    let slept = case.path_in_words(&SWAPPED, |path| !path.sampled && is_reading(case, path));
    claim.saw_if(slept.map(|path| format!("asleep in {path}")), "kernel stack of the sleeps");
    let ran = case.path_in_words(&SWAPPED, |path| path.sampled && is_reading(case, path));
    claim.saw_if(ran.map(|path| format!("on a CPU in {path}")), "samples of what ran");
    rule_out(case, &time, &mut claim);
    Ok(claim)
}

/// Faults that read files.
const OF_FILES: [&str; 1] = ["filemap_fault"];

fn rule_out(case: &Case, time: &PathTime, claim: &mut Claim) {
    let files = case.time_through(&OF_FILES, |path| !path.sampled).ns();
    if files < time.ns() / 5 {
        claim.rule_out(
            ids::FILE_MAJOR_FAULT,
            format!(
                "{} asleep in page faults on files, {} in those on swapped memory",
                duration(files),
                duration(time.ns())
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Blocked;

    const MAJOR: Account = Account::Blocked(Blocked::FaultMajor);
    const SWAP: [&str; 3] = ["folio_wait_bit_common", "do_swap_page", "handle_mm_fault"];
    const ROOM: [&str; 3] = ["reclaim_throttle", "try_to_free_mem_cgroup_pages", "do_swap_page"];
    const FILE: [&str; 2] = ["folio_wait_bit_common", "filemap_fault"];

    #[test]
    fn claimed_is_reading_and_not_making_room() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (MAJOR, 2 * SECOND)])
            .slept_path(10, MAJOR, "", &SWAP, 1000, SECOND)
            .slept_path(10, MAJOR, "", &ROOM, 10, SECOND)
            .sampled_path(10, USER, &SWAP[1..], 100)
            .sampled_path(10, USER, &[], 900)
            .counter(READ, 0, 2000)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(MAJOR), claim.lost.get(USER)), (SECOND, SECOND / 10));
        assert!(claim.chain[0].text.contains("1.00 s asleep in 1,000 sleeps, mean 1.00 ms"));
        assert!(claim.evidence[0].text.starts_with("2,000 pages read from swap"));
        assert!(claim.ruled_out.iter().any(|other| other.cause == "file-major-fault"));
    }

    #[test]
    fn faults_on_files_are_another_cause() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(MAJOR, SECOND)])
            .slept_path(10, MAJOR, "", &FILE, 1000, SECOND)
            .counter(READ, 7, 7)
            .build();
        let Absent(why) = examine(&Case::new(&run)).unwrap_err();
        assert!(why.ends_with("the host read 0 pages"), "{why}");
        let both = RunBuilder::new()
            .thread(10, 10, &[(MAJOR, 2 * SECOND)])
            .slept_path(10, MAJOR, "", &FILE, 1000, SECOND)
            .slept_path(10, MAJOR, "", &SWAP, 1000, SECOND)
            .build();
        assert!(examine(&Case::new(&both)).unwrap().ruled_out.is_empty());
    }
}
