//! direct-reclaim: the host is short of memory, and threads that allocate have to reclaim pages
//! themselves.
//!
//! Below a watermark kswapd frees pages in the background. Where it does not keep up, the thread that
//! asks for a page has to do it itself: it goes through lists of pages that others use, drops clean ones
//! of files, writes or swaps out others, and sleeps until some are free. Whoever asks next is hit, not
//! whoever uses most.
//!
//! # Evidence
//!
//! Sleeps and CPU samples within try_to_free_pages, the reclaim for the whole host; what a memory cgroup
//! reclaims for itself is another function and another cause (memcg-reclaim). The kernel's own spans of
//! it (mm_vmscan_direct_reclaim_begin and _end) and its counts are shown beside them.
//!
//! # Without whylag
//!
//!     grep -E 'allocstall|pgscan_direct|pgsteal_direct' /proc/vmstat    # read it twice
//!     cat /proc/pressure/memory
//!     perf trace -a -e vmscan:mm_vmscan_direct_reclaim_begin
//!
//! # Sources
//!
//! mm/page_alloc.c (__alloc_pages_slowpath); mm/vmscan.c; Documentation/admin-guide/sysctl/vm.rst
//! (min_free_kbytes, watermark_scale_factor).

use model::{Account, Metric, RecorderPart};

use super::memcg_reclaim::{self, HOST_RECLAIM};
use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::DIRECT_RECLAIM,
    title: "the host is short of memory, and its threads reclaim",
    fix: "Use less memory, or have more. So that kswapd keeps ahead of bursts: a larger \
          vm.watermark_scale_factor (or vm.min_free_kbytes). Keep what must not stall in memory \
          (mlock) and its allocations out of the critical path; put who uses up the memory into a \
          cgroup with a limit, so that it reclaims its own.",
    reproduce: "whylag record -- COMMAND, while others use up the memory faster than kswapd frees it",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::MEMCG_RECLAIM,
        tell_apart: "read memory.events of the cgroup and allocstall in /proc/vmstat twice: a limit \
                     that is hit raises the first, a host without memory the second",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// How often, by the zone that had no page.
const STALLS: [&str; 3] =
    ["vm.direct_reclaims", "vm.direct_reclaims_movable", "vm.direct_reclaims_dma32"];

fn examine(case: &Case) -> Verdict {
    let reclaim = case.time_through(&HOST_RECLAIM, |_| true);
    if reclaim.ns() == 0 {
        let own = case.time_through(&memcg_reclaim::RECLAIM, |_| true);
        return Err(Absent(format!(
            "no thread was seen reclaiming memory for the host; {} in reclaim for its cgroup",
            duration(own.ns())
        )));
    }
    let process = case.main_of(&HOST_RECLAIM, |_| true).unwrap_or(0);
    let name = case.process_name(process);
    let title = format!("{name} reclaims memory: the host is short of it");
    let mut claim = Claim::new(title, reclaim.accounts.clone(), reclaim.observations());
    let asleep = reclaim.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    claim.mechanism(format!(
        "threads that allocate reclaim pages themselves: {} asleep in {}, longest {}; {} on a CPU ({})",
        duration(asleep),
        counted(reclaim.sleeps, "sleep"),
        duration(reclaim.max_ns),
        duration(reclaim.ns().saturating_sub(asleep)),
        counted(reclaim.samples, "sample")
    ));
    claim.trigger(trigger(case));
    evidence(case, &mut claim);
    rule_out(case, &reclaim, &mut claim);
    Ok(claim)
}

fn trigger(case: &Case) -> String {
    let stalls = STALLS.iter().filter_map(|name| case.run.counter(name));
    match stalls.fold(0u64, |sum, counter| sum.saturating_add(counter.growth())) {
        0 => "free memory was below the watermark at which kswapd alone is enough".to_owned(),
        stalls => format!(
            "kswapd did not keep up: threads of the host had to reclaim by themselves {}",
            counted(stalls, "time")
        ),
    }
}

fn evidence(case: &Case, claim: &mut Claim) {
    let spans = case.histogram(&Metric::DirectReclaim);
    claim.saw_if(
        spans.map(|spans| format!("reclaims, from begin to end: {}", quantiles(&spans))),
        "mm_vmscan_direct_reclaim_begin, mm_vmscan_direct_reclaim_end",
    );
    let slept = case.path_in_words(&HOST_RECLAIM, |path| !path.sampled);
    claim.saw_if(slept.map(|path| format!("asleep in {path}")), "kernel stack of the sleeps");
    let ran = case.path_in_words(&HOST_RECLAIM, |path| path.sampled);
    claim.saw_if(ran.map(|path| format!("on a CPU in {path}")), "samples of what ran");
    for name in STALLS {
        if let Some(stalls) = case.run.counter(name).filter(|counter| counter.growth() > 0) {
            let text = format!("{} of all threads ({name})", counted(stalls.growth(), "reclaim"));
            claim.saw(text, &stalls.source);
        }
    }
}

fn rule_out(case: &Case, reclaim: &PathTime, claim: &mut Claim) {
    let own = case.time_through(&memcg_reclaim::RECLAIM, |_| true).ns();
    if own < reclaim.ns() / 5 {
        claim.rule_out(
            ids::MEMCG_RECLAIM,
            format!(
                "{} in reclaim because a cgroup is at its limit, {} because the host is short",
                duration(own),
                duration(reclaim.ns())
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Blocked;

    const MINOR: Account = Account::Blocked(Blocked::FaultMinor);
    const HOST: [&str; 4] =
        ["reclaim_throttle", "shrink_node", "try_to_free_pages", "__alloc_pages_slowpath"];
    const CGROUP: [&str; 2] = ["reclaim_throttle", "try_to_free_mem_cgroup_pages"];

    fn run() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (MINOR, SECOND)])
            .slept_path(10, MINOR, "", &HOST, 20, SECOND)
            .sampled_path(10, USER, &HOST[1..], 250)
            .sampled_path(10, USER, &[], 750)
    }

    #[test]
    fn claimed_asleep_and_on_the_cpu_with_the_kernels_counts() {
        let run = run()
            .counter("vm.direct_reclaims", 10, 410)
            .counter("vm.direct_reclaims_dma32", 5, 105)
            .values(Metric::DirectReclaim, 5, &[1_000_000; 500])
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(MINOR), claim.lost.get(USER)), (SECOND, SECOND / 4));
        assert!(claim.chain[1].text.ends_with("by themselves 500 times"), "{:?}", claim.chain);
        assert!(claim.evidence.iter().any(|e| e.text.starts_with("reclaims, from begin to end")));
        assert!(claim.ruled_out.iter().any(|other| other.cause == "memcg-reclaim"));
    }

    #[test]
    fn reclaim_of_a_cgroup_is_another_cause() {
        let own = RunBuilder::new()
            .thread(10, 10, &[(MINOR, SECOND)])
            .slept_path(10, MINOR, "", &CGROUP, 20, SECOND)
            .build();
        let Absent(why) = examine(&Case::new(&own)).unwrap_err();
        assert!(why.ends_with("1.00 s in reclaim for its cgroup"), "{why}");
        let both = run().slept_path(10, MINOR, "", &CGROUP, 20, SECOND).build();
        let claim = examine(&Case::new(&both)).unwrap();
        assert!(claim.ruled_out.is_empty() && claim.lost.get(MINOR) == SECOND);
    }
}
