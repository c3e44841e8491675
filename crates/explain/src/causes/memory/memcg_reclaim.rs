//! memcg-reclaim: a memory cgroup is at its limit, and threads in it that allocate have to reclaim
//! pages themselves.
//!
//! The host may have plenty of free memory. Reclaim is done by the thread that asks: on a CPU, or
//! asleep until pages have been written.
//!
//! # Evidence
//!
//! Sleeps and CPU samples within try_to_free_mem_cgroup_pages, or within the wait above
//! memory.high; the growth of the count of times that the limit was hit; limit and use of the
//! cgroup. Reclaim because the host is short of memory is direct-reclaim.
//!
//! # Without whylag
//!
//!     cat /sys/fs/cgroup/GROUP/memory.events     # max, high; version 1: memory.failcnt
//!     cat /sys/fs/cgroup/GROUP/memory.pressure
//!     perf trace -a -e vmscan:mm_vmscan_memcg_reclaim_begin
//!
//! # Sources
//!
//! mm/memcontrol.c; mm/vmscan.c; Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.high).

use model::units::bytes;
use model::{Account, Blocked, Counter, RecorderPart};

use super::page_faults;
use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration};

pub const CAUSE: Cause = Cause {
    id: ids::MEMCG_RECLAIM,
    title: "a memory cgroup at its limit makes its own threads reclaim",
    fix: "Raise the cgroup's limit above what it really uses, page cache included (memory.max, \
          memory.limit_in_bytes), or use less: drop file pages behind a stream \
          (posix_fadvise DONTNEED, O_DIRECT), write dirty ones early (sync_file_range). With \
          version 2, memory.low of the important one protects it.",
    reproduce: "mysteries/bin/memcg-reclaim-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[
        LookAlike {
            cause: ids::FILE_MAJOR_FAULT,
            tell_apart: "raise the cgroup's memory limit and record again: pages that were evicted \
                         by the limit then stay",
            mutual: true,
        },
        LookAlike {
            cause: ids::FIRST_TOUCH,
            tell_apart: "read memory.events (version 1: memory.failcnt) of the cgroup before and \
                         after: only a limit that is hit raises it",
            mutual: true,
        },
    ],
    symptom: false,
    examine,
};

/// Reclaim of a cgroup's own pages, whoever needs the next one, and the wait for being above
/// `memory.high`.
pub(super) const RECLAIM: [&str; 3] = [
    "try_to_free_mem_cgroup_pages",
    "mem_cgroup_handle_over_high",
    "__mem_cgroup_handle_over_high",
];
/// Reclaim for the whole host, by who needs the next page.
pub(super) const HOST_RECLAIM: [&str; 2] = ["__alloc_pages_direct_reclaim", "try_to_free_pages"];
const FAILURES: &str = "cgroup.memory.failcnt";

fn examine(case: &Case) -> Verdict {
    let reclaim = case.time_through(&RECLAIM, |_| true);
    let host = case.time_through(&HOST_RECLAIM, |_| true);
    if reclaim.ns() == 0 {
        return Err(Absent(format!(
            "no thread was seen reclaiming memory of its cgroup; {} in reclaim for the host",
            duration(host.ns())
        )));
    }
    let process = case
        .main_of(&RECLAIM, |_| true)
        .map_or("a process".to_owned(), |tgid| case.process_name(tgid));
    let title = format!("{process} reclaims memory: its cgroup is at its limit");
    let mut claim = Claim::new(title, reclaim.accounts.clone(), reclaim.observations());
    let asleep = reclaim.accounts.sum_of(|account| matches!(account, Account::Blocked(_)));
    claim.mechanism(format!(
        "each further page must first be reclaimed from the cgroup, by the thread that needs it: {} \
         asleep in {}, longest {}; {} on a CPU ({})",
        duration(asleep),
        counted(reclaim.sleeps, "sleep"),
        duration(reclaim.max_ns),
        duration(reclaim.ns().saturating_sub(asleep)),
        counted(reclaim.samples, "sample")
    ));
    let failures = case.run.counter(FAILURES).filter(|counter| counter.growth() > 0);
    match failures {
        Some(failures) => {
            claim.trigger(limit_in_words(case, failures));
            claim.saw(
                format!("the limit was hit {} times", count(failures.growth())),
                &failures.source,
            );
        }
        None => claim.trigger("a cgroup that these threads are in is at its limit".to_owned()),
    }
    let slept = case.path_in_words(&RECLAIM, |path| !path.sampled);
    claim.saw_if(slept.map(|p| format!("asleep in {p}")), "kernel stack of the sleeps");
    let ran = case.path_in_words(&RECLAIM, |path| path.sampled);
    claim.saw_if(ran.map(|p| format!("on a CPU in {p}")), "samples of what ran");

    rule_out(case, &reclaim, &host, &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, reclaim: &PathTime, host: &PathTime, claim: &mut Claim) {
    if host.ns() < reclaim.ns() / 5 {
        claim.exclude(
            "reclaim for the whole host",
            format!(
                "{} in reclaim because the host is short of memory, {} because the cgroup is",
                duration(host.ns()),
                duration(reclaim.ns())
            ),
        );
    } else {
        claim.doubt(0.7, "the host is short of memory, too, and its threads reclaim for it");
    }
    let major = case.accounts.get(Account::Blocked(Blocked::FaultMajor));
    let in_reclaim = reclaim.accounts.get(Account::Blocked(Blocked::FaultMajor));
    let fresh = case
        .time_through(&[], |path| page_faults::is_new(case, path) && !case.passes(path, &RECLAIM))
        .ns();
    if fresh < reclaim.ns() {
        claim.rule_out(
            ids::FIRST_TOUCH,
            format!(
                "allocating and clearing new pages took {} besides, reclaim {}",
                duration(fresh),
                duration(reclaim.ns())
            ),
        );
    }
    claim.exclude_by(
        Needs::parts(&[RecorderPart::Faults]),
        "reading pages back from swap",
        format!(
            "{} in faults that read pages back, besides reclaim",
            duration(major.saturating_sub(in_reclaim))
        ),
    );
}

/// The limit of the cgroup whose counter this is: counters of one cgroup are in one directory.
fn limit_in_words(case: &Case, failures: &Counter) -> String {
    let directory = |source: &str| source.rsplit_once('/').map(|(dir, _)| dir.to_owned());
    let here = directory(&failures.source);
    let of_it = |name: &str| {
        case.run.sums.counters.iter().find(|c| c.name == name && directory(&c.source) == here)
    };
    match (of_it("cgroup.memory.limit_bytes"), of_it("cgroup.memory.usage_bytes")) {
        (Some(limit), Some(usage)) => format!(
            "the cgroup may use {} and used {} when it was last read",
            bytes(limit.last),
            bytes(usage.last.max(usage.first))
        ),
        _ => "the cgroup is at its limit".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const MINOR: Account = Account::Blocked(Blocked::FaultMinor);
    const CHARGE: [&str; 4] =
        ["reclaim_throttle", "try_to_free_mem_cgroup_pages", "charge_memcg", "do_anonymous_page"];

    fn run() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (MINOR, SECOND)])
            .slept_path(10, MINOR, "", &CHARGE, 20, SECOND)
            .sampled_path(10, USER, &CHARGE[1..], 250)
            .sampled_path(10, USER, &[], 750)
    }

    #[test]
    fn claimed_asleep_and_on_the_cpu_with_the_limit() {
        let run = run()
            .counter(FAILURES, 10, 4010)
            .counter("cgroup.memory.limit_bytes", 16 << 20, 16 << 20)
            .counter("cgroup.memory.usage_bytes", 16 << 20, 15 << 20)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(MINOR), claim.lost.get(USER)), (SECOND, SECOND / 4));
        assert!(claim.chain.iter().any(|l| l.text.contains("may use 16 MiB")), "{claim:?}");
        assert!(claim.evidence.iter().any(|e| e.text.contains("4,000 times")));
        assert!(claim.excluded.iter().any(|e| e.what == "reclaim for the whole host"));
    }

    #[test]
    fn a_short_host_is_another_cause() {
        let frames = ["shrink_node", "try_to_free_pages", "__alloc_pages_direct_reclaim"];
        let host = RunBuilder::new()
            .thread(10, 10, &[(MINOR, SECOND)])
            .slept_path(10, MINOR, "", &frames, 20, SECOND)
            .build();
        assert!(examine(&Case::new(&host)).unwrap_err().0.contains("for the host"));
        let both = run().slept_path(10, MINOR, "", &frames, 20, SECOND).build();
        assert_eq!(examine(&Case::new(&both)).unwrap().doubts.len(), 1);
    }

    #[test]
    fn touching_new_memory_is_no_reclaim() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["clear_page_erms", "do_anonymous_page"], 500)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
