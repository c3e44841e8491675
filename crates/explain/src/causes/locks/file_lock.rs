//! file-lock: threads wait in flock() or fcntl(F_SETLKW) for a file that another has locked, or until a
//! lock file is gone.
//!
//! The one that ends a wait is the one that unlocked: what it did meanwhile, as far as it was
//! recorded, says why it had the file locked for so long. Nothing is lost where whoever had the lock
//! only waited for work with it, for nine tenths of that time: idle servers of Postfix do so, which
//! accept connections in turn.
//!
//! # Evidence
//!
//! Sleeps in flock and fcntl for a file lock, by inode, with the process that ended each wait; what
//! that holder waited for itself meanwhile (the disk, a CPU), as far as it was recorded. Sleeps of
//! the thread's own choice between a try that was refused (LOCK_NB, F_SETLK) and the next.
//!
//! A lock by a file's existence: open(O_CREAT|O_EXCL), mkdir, link, symlink or a rename that may not replace
//! fails with EEXIST, the thread sleeps (or waits in poll or a futex until a time is over), and makes the
//! same call with the same path (its first 139 bytes) again. To make sure that there is a folder (mkdir -p)
//! fails in the same way, and is no wait: so either nothing at all is done but to sleep between a refusal
//! and the next try, or the call succeeds in the end. So do child processes of a script (until mkdir lock; do
//! sleep 1; done): the command `sleep` between two of one name, the first of which failed so, up to one that
//! did not; the path is not known then. Who had made the file is not seen.
//!
//! # Without whylag
//!
//!     lslocks                                   # who holds which file lock
//!     cat /proc/locks                           # lines with -> are waiters
//!     strace -f -T -e trace=flock,fcntl -p PID
//!     strace -f -Z -e trace=openat,mkdir,link,symlink -p PID   # again and again EEXIST: a lock file
//!
//! # Sources
//!
//! flock(2); fcntl(2); open(2) (O_EXCL); fs/locks.c; proc_locks(5).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{
    Account, Accounts, Blocked, ChainEnd, Metric, Outlier, RecorderPart, Retry, Syscall, WaitSum,
};

use crate::case::beyond::{Holders, Whose};
use crate::case::chain_ends::ChainEnds;
use crate::case::in_words::{in_words, stacks};
use crate::case::lost::FILE_LOCK;
use crate::case::{Case, Waits, sum_of};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::tries::Tries;
use crate::text::{counted, duration, mean, percent, quantiles};

pub const CAUSE: Cause = Cause {
    id: ids::FILE_LOCK,
    title: "threads queue for a locked file",
    fix: "Hold the lock for the access to the file alone and do the work before or after, lock a \
          range of the file or a file per shard, or let one process own the file and ask it.",
    reproduce: "mysteries/bin/file-lock-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[LookAlike {
        cause: ids::BLOCKED_LOG_PIPE,
        tell_apart: "see the call that the waiting threads sleep in ('strace -f -p PID'): \
                         flock or fcntl waits for the lock, write for room in a pipe",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// What to do where nobody waits in the call.
const FIX_OF_TRIES: &str = "Ask the kernel to wait (flock without LOCK_NB, F_SETLKW): it wakes the \
                            thread when the lock is let go, and not a part of a sleep later. Then \
                            see who holds the lock (lslocks), and let it do so for less time.";
/// What to do where the lock is a file that is there or not.
const FIX_OF_LOCK_FILE: &str = "Lock with flock instead of a file's existence: the kernel wakes who waits when the \
                                lock is let go, not a part of a sleep later, and lets go of it when its owner \
                                ends, whatever way. Then see who has it, and let it do so for less time.";
/// What to do where the holder sleeps by a timer of its own.
const FIX_OF_SLEEP: &str = "The holder sleeps with the file locked: let go of the lock before it sleeps (a \
                            pause or a retry with a delay belongs outside).";
/// Calls that wait for a file lock.
const CALLS: [&str; 2] = ["flock", "fcntl"];
/// Files worth a line.
const FILES_SHOWN: usize = 3;

fn examine(case: &Case) -> Verdict {
    let tries = Tries::of(case, |retry| retry.call.is_one_of(&CALLS));
    let slept = case.lost.get(FILE_LOCK);
    let lock_files = Tries::of(case, Retry::is_of_lock_file);
    if lock_files.ns > tries.ns.max(slept) {
        let mut claim = by_lock_file(case, &lock_files);
        add_tries(&tries, &mut claim);
        return Ok(claim);
    }
    if tries.ns > slept {
        let mut claim = by_tries(case, &tries);
        add_lock_files(&lock_files, &mut claim);
        return Ok(claim);
    }
    let Some(process) = case.main_process(|account| account == FILE_LOCK) else {
        return Err(Absent("no thread waited for a file lock (flock, fcntl)".to_owned()));
    };
    if slept == 0 {
        return Err(Absent(format!(
            "threads waited for a file lock for {}, and whoever got it waited for work with it: a \
             connection, a message",
            duration(case.accounts.get(FILE_LOCK))
        )));
    }
    let total = case.wait_total(FILE_LOCK);
    let holder = main_holder(case);
    let name = case.process_name(process);
    let title = match holder.filter(|h| h.waker_tgid != process) {
        Some(h) => {
            let other = format!("{} (pid {})", h.waker_comm, h.waker_tgid);
            format!("{name} waits for a file that {other} keeps locked")
        }
        None => format!("threads of {name} queue for a locked file"),
    };
    let lost: Accounts = [(FILE_LOCK, slept)].into_iter().collect();
    let mut claim = Claim::new(title, lost, total.count);
    add_tries(&tries, &mut claim);
    add_lock_files(&lock_files, &mut claim);

    let threads = case.threads_in(|account| account == FILE_LOCK).count() as u64;
    claim.mechanism(format!(
        "{} asleep for {} until a file lock was let go: {}, mean {}, longest {}",
        counted(threads, "thread"),
        duration(slept),
        counted(total.count, "wait"),
        mean(total.ns, total.count),
        duration(total.max_ns)
    ));
    claim.trigger(trigger(case, holder, slept));
    say_ends(case, &mut claim);
    evidence(case, &mut claim);
    rule_out(case, slept, &mut claim);
    Ok(claim)
}

fn evidence(case: &Case, claim: &mut Claim) {
    for (inode, waits, by_waiter) in files(case).into_iter().take(FILES_SHOWN) {
        claim.saw(
            format!(
                "file with inode {inode} (as in /proc/locks): {}, {} asleep, mean {}, longest {}; \
                 {} ended when one that had waited for it itself let go",
                counted(waits.count, "wait"),
                duration(waits.ns),
                mean(waits.ns, waits.count),
                duration(waits.max_ns),
                percent(by_waiter, waits.count)
            ),
            "inode of the file at sched_switch, waker at sched_waking",
        );
    }
    for name in CALLS {
        let metric = Syscall::named(name).map(Metric::Syscall);
        let histogram = metric.and_then(|metric| case.histogram(&metric));
        claim.saw_if(
            histogram.map(|h| format!("all calls of {name}: {}", quantiles(&h))),
            "system call histogram (sys_enter, sys_exit)",
        );
    }
    claim.saw_if(case.worst(FILE_LOCK).map(|o| in_words(case, o)), "longest wait of the run");
    let (_, user) = stacks(case, FILE_LOCK, |_| true, "");
    claim.saw_if(user.map(|s| format!("the lock is taken in {s}")), "user stack");
    claim.saw_if(case.stops_at(waits_here), "waker at sched_waking");
}

/// What whoever had the file locked did meanwhile, as the sums of all waits show.
fn say_ends(case: &Case, claim: &mut Claim) {
    let mut ends = ChainEnds::default();
    case.waits(FILE_LOCK).for_each(|wait| ends.add(wait));
    let holders = Holders::new(case.whole(), |_, account, _| account == FILE_LOCK);
    let end = ends.main();
    let whose = end.map_or(Whose::Unknown, |end| holders.whose(&ends, end, case.whole()));
    let whoever = whose.or_beyond("while others waited, whoever had the file locked");
    for said in [ends.in_words(&whoever), ends.longest_in_words(case.whole())] {
        said.into_iter().for_each(|said| claim.trigger(said));
    }
    claim.fix = match end {
        Some(ChainEnd::Timer | ChainEnd::Timeout) if whose == Whose::Holders => Some(FIX_OF_SLEEP),
        _ => None,
    };
}

fn add_tries(tries: &Tries, claim: &mut Claim) {
    tries.add_to(
        claim,
        "a try for the file lock that was refused",
        "file",
        "failed calls of flock and fcntl, and the sleeps up to the next of the same file",
    );
}

fn add_lock_files(tries: &Tries, claim: &mut Claim) {
    tries.add_to(
        claim,
        "a try to make a file that was there",
        "file",
        "failed calls that make a file, and the sleeps up to the next with the same path, or of the \
         same command of a script",
    );
}

/// Where more was tried than waited for.
fn by_tries(case: &Case, tries: &Tries) -> Claim {
    let name = case.process_name(tries.process);
    let title = format!("{name} tries again and again for a file that is locked");
    let mut claim = Claim::new(title, Accounts::new(), 0);
    claim.fix = Some(FIX_OF_TRIES);
    claim.mechanism(format!(
        "{} asleep between tries that were refused: {}",
        duration(tries.ns),
        counted(tries.count, "sleep")
    ));
    claim.trigger("who had the file locked was not seen: a refusal does not say".to_owned());
    add_tries(tries, &mut claim);
    claim.doubt(0.9, "who has the file locked, and what it does with it, is not known");
    claim
}

/// Where most was waited for a lock file.
fn by_lock_file(case: &Case, tries: &Tries) -> Claim {
    let name = case.process_name(tries.process);
    let file = tries.name().map_or(String::new(), |path| format!("{path}, "));
    let title = format!("{name} tries again and again to make {file}a lock file that is there");
    let mut claim = Claim::new(title, Accounts::new(), 0);
    claim.fix = Some(FIX_OF_LOCK_FILE);
    claim.mechanism(format!(
        "{} asleep between tries that were refused, because the file was there (EEXIST): {}",
        duration(tries.ns),
        counted(tries.count, "sleep")
    ));
    claim.trigger("who had made the lock file was not seen: a refusal does not say".to_owned());
    add_lock_files(tries, &mut claim);
    claim.doubt(0.9, "who has made the lock file, and what it does meanwhile, is not known");
    if tries.won_ns == 0 {
        claim.doubt(
            0.8,
            "the lock file was never gone: it may be left over from a process that has ended, or \
             the thread stands by until it is needed",
        );
    }
    claim
}

fn waits_here(outlier: &Outlier) -> bool {
    outlier.blocked == Some(Blocked::FileLock)
}

fn trigger(case: &Case, holder: Option<&WaitSum>, slept: u64) -> String {
    let Some(holder) = holder else {
        return "who had the file locked was not seen".to_owned();
    };
    let behind = |which: fn(Account) -> bool| {
        let found = case.behind_holders(waits_here, |_, account| which(account));
        found.accounts.total().min(slept)
    };
    format!(
        "{} (pid {}) let go of the lock for {} of the waiting; while it was waited for, the \
         holder was off the CPU for the disk {} and for a CPU {} of the time",
        holder.waker_comm,
        holder.waker_tgid,
        percent(holder.ns, slept),
        percent(behind(is_disk), slept),
        percent(behind(Account::is_waiting_for_cpu), slept)
    )
}

fn is_disk(account: Account) -> bool {
    matches!(account, Account::Blocked(Blocked::Disk | Blocked::DirtyThrottle))
}

fn rule_out(case: &Case, slept: u64, claim: &mut Claim) {
    for (causes, which, what) in [
        (
            &[ids::CPU_RUNQUEUE, ids::CGROUP_THROTTLE][..],
            Account::is_waiting_for_cpu as fn(_) -> _,
            "a CPU",
        ),
        (&[ids::FSYNC_JOURNAL][..], is_disk, "the disk"),
    ] {
        let behind = case.behind_holders(waits_here, |_, account| which(account));
        let ns = behind.accounts.total().min(slept);
        if ns < slept / 5 {
            let because = format!(
                "those who had the file locked waited for {what} themselves during {} of {} only",
                duration(ns),
                duration(slept)
            );
            for cause in causes {
                claim.rule_out(*cause, because.clone());
            }
        } else {
            let text = format!(
                "those who had the file locked waited for {what} themselves for {} of the time: \
                 that may be why they held it so long",
                percent(ns, slept)
            );
            claim.doubt(0.8, &text);
        }
    }
}

/// The process that ended most of the waiting.
fn main_holder<'a>(case: &Case<'a>) -> Option<&'a WaitSum> {
    case.waits(FILE_LOCK).filter(|wait| wait.waker_tgid != 0).max_by_key(|wait| wait.ns)
}

/// Waits by file, the longest first: (inode, waits, how many were ended by a waiter).
fn files(case: &Case) -> Vec<(u64, Waits, u64)> {
    let mut files = BTreeMap::<u64, Vec<&WaitSum>>::new();
    for wait in case.waits(FILE_LOCK).filter(|wait| wait.object != 0) {
        files.entry(wait.object).or_default().push(wait);
    }
    let mut files: Vec<_> = files
        .into_iter()
        .map(|(inode, waits)| {
            let by_waiter = waits.iter().fold(0u64, |sum, w| sum.saturating_add(w.by_waiter));
            (inode, sum_of(waits.into_iter()), by_waiter)
        })
        .collect();
    files.sort_by_key(|(_, waits, _)| Reverse(waits.ns));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::tries::SLEEP;
    use crate::testing::{FUTEX, RunBuilder, SECOND, USER, wait};

    fn queue(waker_tgid: u32) -> RunBuilder {
        let sum = WaitSum {
            waker_tgid,
            waker_comm: "holder".into(),
            by_waiter: 90,
            ..wait(10, FILE_LOCK, 77, 100, 2 * SECOND)
        };
        RunBuilder::new().thread(10, 10, &[(USER, SECOND), (FILE_LOCK, 2 * SECOND)]).wait(sum)
    }

    #[test]
    fn claimed_with_its_file_and_who_ended_the_waits() {
        let run = queue(10).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(FILE_LOCK), 2 * SECOND);
        assert_eq!(claim.title, "threads of main-10 (pid 10) queue for a locked file");
        let file = &claim.evidence[0].text;
        assert!(file.starts_with("file with inode 77") && file.contains("90 %"), "{file}");
        assert!(claim.doubts.is_empty());
    }

    #[test]
    fn a_holder_that_sleeps_is_said_and_the_fix_follows() {
        let mut run = queue(10).build();
        run.sums.waits[0].ends = [(ChainEnd::Timer, 2 * SECOND)].into();
        run.sums.waits[0].longest_end = Some((10, ChainEnd::Timer));
        run.sums.waits[0].waker_tid = 10;
        let claim = examine(&Case::new(&run)).unwrap();
        let said = |text: &str| claim.chain.iter().any(|link| link.text.contains(text));
        assert!(said("had the file locked slept by a timer of its own for 100"), "{claim:?}");
        assert!(said("(tid 10), which slept"));
        assert!(claim.fix.is_some_and(|fix| fix.contains("let go of the lock before it sleeps")));
    }

    #[test]
    fn another_process_that_has_the_file_locked_is_named() {
        let run = queue(66).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(claim.title.ends_with("that holder (pid 66) keeps locked"), "{}", claim.title);
    }

    #[test]
    fn sleeps_between_tries_are_waiting_for_the_lock_and_other_sleeps_are_not() {
        let retry = |call, ns| model::Retry {
            pipe: false,
            name: None,
            account: SLEEP,
            won_ns: 0,
            tgid: 10,
            call: Syscall::named(call).unwrap(),
            errno: 11,
            object: 77,
            count: 100,
            ns,
            max_ns: ns / 50,
        };
        let mut run =
            RunBuilder::new().thread(10, 10, &[(USER, SECOND), (SLEEP, 3 * SECOND)]).build();
        run.sums.retries = vec![retry("mount", SECOND)];
        assert!(examine(&Case::new(&run)).is_err());
        run.sums.retries.push(retry("flock", 2 * SECOND));
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(SLEEP), claim.waits), (2 * SECOND, 100));
        assert!(claim.takes_idle && claim.fix.is_some());
        let found = &crate::explain(&run).findings[0];
        assert_eq!((found.cause.as_str(), found.lost_ns), ("file-lock", 2 * SECOND));
    }

    #[test]
    fn sleeps_between_tries_to_make_a_file_are_waiting_for_a_lock_file() {
        let futex = Account::Blocked(Blocked::Futex);
        let retry = |account, won_ns| model::Retry {
            pipe: false,
            name: Some("/run/job.lock".into()),
            account,
            won_ns,
            tgid: 10,
            call: Syscall::named("openat").unwrap(),
            errno: 17,
            object: 1 << 40,
            count: 20,
            ns: 2 * SECOND,
            max_ns: SECOND,
        };
        let accounts = [(USER, SECOND), (SLEEP, 3 * SECOND), (futex, 3 * SECOND)];
        let mut run = RunBuilder::new().thread(10, 10, &accounts).build();
        let doubts = |run: &model::Run| examine(&Case::new(run)).unwrap().doubts.len();
        run.sums.retries = vec![retry(SLEEP, 0)];
        assert_eq!(doubts(&run), 2);
        run.sums.retries = vec![retry(SLEEP, SECOND), retry(futex, SECOND)];
        assert_eq!(doubts(&run), 1);
        let found = &crate::explain(&run).findings[0];
        assert_eq!((found.cause.as_str(), found.lost_ns), ("file-lock", 4 * SECOND));
        assert!(found.title.contains("to make /run/job.lock, a lock file"), "{}", found.title);
        assert!(found.evidence[0].text.ends_with("most for /run/job.lock"), "{found:?}");
    }

    #[test]
    fn who_waits_for_the_turn_to_wait_for_work_has_lost_nothing() {
        let turns = |idle_turn_ns| {
            let mut run = queue(10).build();
            (run.sums.waits[0].turn_ns, run.sums.waits[0].idle_turn_ns) = (80, idle_turn_ns);
            run
        };
        let run = turns(80);
        let case = Case::new(&run);
        let Absent(why) = examine(&case).unwrap_err();
        assert!(why.contains("waited for work with it"), "{why}");
        assert_eq!((case.lost.get(FILE_LOCK), case.idle_ns), (0, 2 * SECOND));
        assert!(crate::explain(&run).findings.is_empty());
        assert!(examine(&Case::new(&turns(40))).is_ok());
    }

    #[test]
    fn not_claimed_for_locks_of_user_space() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(FUTEX, SECOND)])
            .wait(WaitSum { lock_like: 10, ..wait(10, FUTEX, 1, 10, SECOND) })
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }

    #[test]
    fn a_holder_at_the_disk_is_a_doubt_and_one_that_works_rules_it_out() {
        let has = |claim: &Claim| claim.ruled_out.iter().any(|r| r.cause == "fsync-journal");
        let run = queue(10)
            .interval(10, FILE_LOCK, 0, 2 * SECOND, Some(11))
            .interval(11, Account::Blocked(Blocked::Disk), 0, SECOND, None)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(!has(&claim) && claim.doubts.len() == 1);
        assert!(has(&examine(&Case::new(&queue(10).build())).unwrap()));
    }
}
