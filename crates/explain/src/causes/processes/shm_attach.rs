//! shm-attach: attaching System V shared memory waits for the list of all segments.
//!
//! All segments of an IPC namespace are in one table. shmat, shmdt and the end of a process that
//! has segments attached take its lock for writing; whoever lists or adds up the segments
//! (SHM_INFO, /proc/sysvipc/shm, ipcs) holds it for reading, the longer the more there are.
//!
//! # Evidence
//!
//! CPU samples that spin, and sleeps, for a read-write semaphore of the kernel within shmat and
//! shmdt; who walked through the table of segments meanwhile (shmctl with SHM_INFO, a read of
//! /proc/sysvipc/shm); who ended the sleeps.
//!
//! # Without whylag
//!
//!     nsenter -t PID -i ipcs -m | wc -l          # segments in its IPC namespace
//!     strace -f -T -e trace=shmat,shmdt,shmctl -p PID
//!     perf lock record -a -- sleep 5; perf lock contention   # since Linux 5.19
//!
//! # Sources
//!
//! shmop(2); shmctl(2); ipc/shm.c; ipc/util.c.

use std::collections::{BTreeMap, BTreeSet};

use model::{Account, Blocked, PathSum, RecorderPart};

use crate::case::Case;
use crate::case::mmap_holders::is_mmap_lock;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::causes::processes::ipc_tables::{
    WAIT, calls_in_words, is_one_of, lock_in_words, waited,
};
use crate::text::{counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SHM_ATTACH,
    title: "attaching shared memory waits for the lock of the table of all segments",
    fix: "Attach once and stay attached; use POSIX shared memory (shm_open or memfd_create, and \
          mmap), which has no table; let monitors list segments less often (SHM_INFO, ipcs, \
          /proc/sysvipc/shm) and remove segments that nobody uses.",
    reproduce: "mysteries/bin/shm-attach-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples, RecorderPart::Locks])
        .and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Calls that change the table.
const CALLS: &[&str] = &["shmat", "shmdt"];
/// Calls that list it.
const LISTS: &[&str] = &["shmctl", "read", "pread64"];
/// Functions that walk the table and hold its lock meanwhile.
const WALKS: &[&str] =
    &["shmctl_shm_info", "shm_get_stat", "sysvipc_proc_next", "sysvipc_proc_show"];
const RWSEM: Account = Account::Blocked(Blocked::Rwsem);

fn examine(case: &Case) -> Verdict {
    let wait = waited(case, CALLS);
    if wait.time.ns() == 0 {
        let calls = calls_in_words(case, CALLS);
        return Err(Absent(match calls {
            Some(calls) => format!("no waiting for a kernel lock in shmat or shmdt ({calls})"),
            None => "neither shmat nor shmdt was called".to_owned(),
        }));
    }

    let title = "shmat and shmdt wait for the one lock of all System V segments".to_owned();
    let mut claim = Claim::new(title, wait.time.accounts.clone(), wait.time.observations());
    claim.mechanism(format!(
        "shmat and shmdt: {} (rw-semaphore of the IPC namespace's table)",
        lock_in_words(&wait)
    ));
    claim.trigger(holder(case));
    claim.saw_if(calls_in_words(case, CALLS), "system call histograms (sys_enter, sys_exit)");
    let here = |path: &PathSum| is_one_of(path, CALLS);
    claim.saw_if(
        case.path_in_words(WAIT, here),
        "the most frequent stack in the lock, kernel first (CPU samples, sched_switch)",
    );
    let walks = case.time_through(WALKS, |path| path.sampled);
    claim.saw_if(
        case.path_in_words(WALKS, |path| path.sampled).map(|path| {
            format!("{} of recorded CPU time walked the table: {path}", duration(walks.ns()))
        }),
        "CPU samples with kernel stacks",
    );
    claim.saw_if(wakers(case), "sched_waking: who let go of a kernel rw-semaphore");
    rule_out(case, wait.spun_ns, wait.slept_ns, &mut claim);
    Ok(claim)
}

/// Who holds the lock, as far as it was recorded.
fn holder(case: &Case) -> String {
    let listing = |path: &&PathSum| path.sampled && is_one_of(path, LISTS);
    let readers: BTreeSet<u32> =
        case.run.sums.paths.iter().filter(listing).map(|p| p.tgid).collect();
    let walked = |tgid| case.time_through(WALKS, |p| p.sampled && p.tgid == tgid).ns();
    let walkers = readers.into_iter().map(|tgid| (tgid, walked(tgid)));
    match walkers.filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns) {
        Some((tgid, ns)) => format!(
            "{} lists or adds up all segments and holds the lock meanwhile: {} on a CPU",
            case.process_name(tgid),
            duration(ns)
        ),
        None => "no recorded process lists the segments: they attach at the same time, or one \
                 that was not recorded lists them (ipcs, a monitor)"
            .to_owned(),
    }
}

/// `broker (pid 12) ended 1,234 waits, 2 s`, the largest first.
fn wakers(case: &Case) -> Option<String> {
    let mut wakers = BTreeMap::<(&str, u32), (u64, u64)>::new();
    for wait in case.waits(RWSEM).filter(|wait| wait.waker_tgid != 0) {
        let sum = wakers.entry((&wait.waker_comm, wait.waker_tgid)).or_default();
        *sum = (sum.0.saturating_add(wait.count), sum.1.saturating_add(wait.ns));
    }
    let ((comm, tgid), (count, ns)) = wakers.into_iter().max_by_key(|(_, (_, ns))| *ns)?;
    Some(format!("{comm} (pid {tgid}) ended {}, {} in all", counted(count, "wait"), duration(ns)))
}

fn rule_out(case: &Case, spun_ns: u64, slept_ns: u64, claim: &mut Claim) {
    let mapping = case.accounts.sum_of(is_mmap_lock);
    claim.rule_out(
        ids::MMAP_LOCK,
        format!(
            "{} asleep for an mmap_lock, which is another lock, {} for this one",
            duration(mapping),
            duration(slept_ns)
        ),
    );
    let queued = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "{} were on a CPU, spinning, or asleep, not ready to run; waiting for a CPU is {} of \
             the wall time",
            duration(spun_ns.saturating_add(slept_ns)),
            percent(queued, case.wall_ns)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Syscall;

    const LOCK: [&str; 3] = ["rwsem_down_write_slowpath", "down_write", "do_shmat"];

    fn in_call(name: &str) -> Account {
        Account::Syscall(Syscall::named(name).unwrap())
    }

    fn client() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (in_call("shmat"), SECOND), (RWSEM, 2 * SECOND)])
            .sampled_path(10, in_call("shmat"), &["do_mmap", "do_shmat"], 100)
    }

    #[test]
    fn waiting_for_the_table_is_claimed_and_who_walks_it_is_named() {
        let run = client()
            .slept_path(10, RWSEM, "shmat", &LOCK, 100, 2 * SECOND)
            .thread(20, 20, &[(in_call("shmctl"), SECOND)])
            .sampled_path(20, in_call("shmctl"), &["shm_add_rss_swap", "shmctl_shm_info"], 50)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(RWSEM), 2 * SECOND);
        assert!(claim.chain[1].text.contains("main-20 (pid 20) lists"), "{}", claim.chain[1].text);
    }

    #[test]
    fn who_walks_the_table_may_be_unknown() {
        let run = client().slept_path(10, RWSEM, "shmat", &LOCK, 100, SECOND).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.chain[1].text.contains("not recorded"), "{}", claim.chain[1].text);
    }

    #[test]
    fn the_price_of_attaching_is_not_this() {
        let run = client()
            .values(model::Metric::Syscall(Syscall::named("shmat").unwrap()), 5, &[8000])
            .build();
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("no waiting"), "{missing}");
    }

    #[test]
    fn the_mmap_lock_is_another_lock() {
        let mapping = Account::Blocked(Blocked::MmapLockWrite);
        let run = client()
            .thread(11, 10, &[(mapping, SECOND)])
            .slept_path(10, mapping, "shmat", &LOCK, 100, SECOND)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
