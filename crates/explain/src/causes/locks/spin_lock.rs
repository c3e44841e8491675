//! spin-lock: threads wait for a lock by asking for it again and again in user mode, and use up CPUs meanwhile.
//!
//! A spinlock is right where whoever has it is done within less than it takes to fall asleep and wake up, and has a
//! CPU of its own. Where the holder loses its CPU, all others spin until it has one again, and where many want the
//! lock most of what the CPUs do is to ask for it. The kernel sees nothing but threads that run.
//!
//! # Evidence
//!
//! Samples of on-CPU time whose innermost function is one of a spinlock, by its name: pthread_spin_lock of the C
//! library, ut_delay of InnoDB, and any that has "spinlock", "lock" or "acquire" among its words, if neither it nor
//! its class is one of a lock that sleeps. They have to be in two threads of a process at least, and a tenth of its
//! CPU time. Where threads of the process had to wait for a CPU, that part of it which the spinning has of their
//! CPU time is its, too. Loops without a function of their own are not seen, nor processes that share a lock.
//!
//! # Without whylag
//!
//!     perf top -p PID                            # the function, and the instructions in it
//!     perf stat -e instructions,cycles -p PID    # few instructions a cycle
//!
//! # Sources
//!
//! pthread_spin_lock(3); storage/innobase/ut/ut0ut.cc of MySQL (ut_delay).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Account, Accounts, RecorderPart, StackId, part_of};

use crate::case::Case;
use crate::case::lost::{Class, class};
use crate::case::purposes::{path, words};
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SPIN_LOCK,
    title: "threads spin in user mode until they get a lock",
    fix: "Use a lock that lets threads sleep (pthread_mutex_lock, std::mutex; PTHREAD_MUTEX_ADAPTIVE_NP spins for a \
          moment first), above all where there can be more threads than CPUs. Hold it for less time, or split it \
          (one per shard or per thread).",
    reproduce: "mysteries/bin/spin-lock-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// A function of a spinlock that no word tells.
const KNOWN: &str = "ut_delay";
/// What lets threads sleep, asks once only, or lets go.
const OTHERS: [&str; 7] = ["mutex", "monitor", "futex", "rwlock", "try", "un", "unlock"];
/// The part of the CPU time of the process, one in so many, and samples, at least.
const PART: u64 = 10;
const SAMPLES: u64 = 50;

/// What spinning takes of a process.
#[derive(Default)]
struct Spinning {
    on_cpu: Accounts,
    samples: u64,
    threads: BTreeSet<u32>,
    functions: BTreeMap<String, u64>,
}

fn examine(case: &Case) -> Verdict {
    let mut all = spinning(case);
    let cpu_ns = |tgid: u32| {
        let accounts = case.process(tgid);
        accounts.map_or(0, |accounts| accounts.sum_of(|account| class(account) == Class::Work))
    };
    all.retain(|tgid, one| {
        let is_part = one.on_cpu.total() >= cpu_ns(*tgid) / PART;
        one.samples >= SAMPLES && one.threads.len() > 1 && is_part
    });
    let Some((tgid, one)) = all.iter().max_by_key(|(_, one)| one.on_cpu.total()) else {
        return Err(Absent(
            "no two threads of a process had a tenth of its CPU time in a function of a spinlock"
                .to_owned(),
        ));
    };
    let (ns, process) = (one.on_cpu.total(), case.process_name(*tgid));
    let function = one.functions.iter().max_by_key(|(_, ns)| **ns).map_or("", |(name, _)| name);
    let waited = without_cpu(case, *tgid, ns, cpu_ns(*tgid));
    let mut lost = one.on_cpu.clone();
    lost.merge(&waited);
    let title = format!("threads of {process} spin in {function} until they get a lock");
    let mut claim = Claim::new(title, lost, one.samples);
    claim.mechanism(format!(
        "{} on a CPU in functions of a spinlock, {} of the CPU time of {process}, in {}",
        duration(ns),
        percent(ns, cpu_ns(*tgid)),
        counted(one.threads.len() as u64, "thread")
    ));
    claim.trigger(match waited.total() {
        0 => "whoever has the lock keeps it for longer than a sleep would take".to_owned(),
        waited => format!(
            "threads had no CPU for {} while others spun: if the one is among them that has the lock, all others spin \
             until it runs again",
            duration(waited)
        ),
    });
    claim.saw(
        format!("{} samples in {function} and its like", count(one.samples)),
        "user stacks of on-CPU samples, innermost function",
    );
    claim.exclude(
        "a lock that lets threads sleep",
        "all of this time is on a CPU in user mode, and in no system call".to_owned(),
    );
    claim.doubt(0.9, "that these functions wait for a lock is known by their names");
    Ok(claim)
}

fn spinning(case: &Case) -> BTreeMap<u32, Spinning> {
    let mut known = HashMap::<StackId, Option<String>>::new();
    let mut all = BTreeMap::<u32, Spinning>::new();
    let sampled = case.run.sums.paths.iter().filter(|path| path.sampled);
    for path in sampled.filter(|path| path.account == Account::User) {
        let Some(id) = path.user else { continue };
        let function = known.entry(id).or_insert_with(|| {
            let frame = case.run.stacks.get(&id)?.frames.first()?;
            frame.symbol.clone().filter(|name| is_spin_lock(name))
        });
        let Some(function) = function else { continue };
        let ns = case.ns_of(path);
        let one = all.entry(path.tgid).or_default();
        one.on_cpu.add(path.account, ns);
        one.samples = one.samples.saturating_add(path.count);
        one.threads.insert(path.tid);
        let of_function = one.functions.entry(function.clone()).or_default();
        *of_function = of_function.saturating_add(ns);
    }
    all
}

/// `pthread_spin_lock`, `SpinLock::Acquire`, `lock_book()`; not `std::mutex::lock`, `try_lock`, `lock::Table::scan`.
fn is_spin_lock(symbol: &str) -> bool {
    let path = path(symbol);
    let Some((function, around)) = path.split_last() else { return false };
    let own = words(function);
    let class = around.last().map(|class| words(class)).unwrap_or_default();
    let has =
        |of: &[String], wanted: &[&str]| of.iter().any(|word| wanted.contains(&word.as_str()));
    let waits = has(&own, &["lock", "acquire", "spinlock"]);
    function == KNOWN || (waits && !has(&own, &OTHERS) && !has(&class, &OTHERS))
}

/// Threads of the process were ready to run: the part of that for which others spun.
fn without_cpu(case: &Case, tgid: u32, spun_ns: u64, cpu_ns: u64) -> Accounts {
    let accounts = case.process(tgid).cloned().unwrap_or_default();
    let waits = accounts.iter().filter(|(account, _)| account.is_waiting_for_cpu());
    let part = waits.map(|(account, ns)| (account, part_of(ns, spun_ns, cpu_ns)));
    part.filter(|(_, ns)| *ns > 0).collect()
}

#[cfg(test)]
mod tests {
    use model::Run;

    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};

    const QUEUED: Account = Account::RunnablePreempted;

    /// Two threads that run for four seconds each, a part of their samples in `function`.
    fn run(function: &str, samples: u64, queued_ns: u64) -> Run {
        let mut run = RunBuilder::new();
        for tid in [11, 12] {
            run = run
                .thread(tid, 10, &[(USER, 4 * SECOND), (QUEUED, queued_ns)])
                .sampled_in_user(10, USER, &[function, "book", "main"], samples)
                .sampled_in_user(10, USER, &["match", "book", "main"], 1_000 - samples);
        }
        let mut run = run.build();
        for (n, path) in run.sums.paths.iter_mut().enumerate() {
            path.tid = if n < 2 { 11 } else { 12 };
        }
        run
    }

    #[test]
    fn threads_that_spin_are_claimed_with_the_waits_for_a_cpu_that_come_of_it() {
        let claim = examine(&Case::new(&run("pthread_spin_lock", 500, SECOND))).unwrap();
        assert_eq!(claim.lost.get(USER), 4 * SECOND);
        assert_eq!(claim.lost.get(QUEUED), SECOND);
        assert!(claim.title.contains("spin in pthread_spin_lock"), "{}", claim.title);
    }

    #[test]
    fn little_of_it_or_one_thread_alone_is_not() {
        assert!(examine(&Case::new(&run("pthread_spin_lock", 60, 0))).is_err());
        let mut alone = run("pthread_spin_lock", 500, 0);
        alone.sums.paths.iter_mut().for_each(|path| path.tid = 11);
        assert!(examine(&Case::new(&alone)).is_err());
    }

    #[test]
    fn names_tell_what_spins() {
        for name in [
            "pthread_spin_lock",
            "lock_book()",
            "SpinLock::Acquire()",
            "TicketLock<int>::lock()",
            "ns::Spinlock::lock",
            "ut_delay",
        ] {
            assert!(is_spin_lock(name), "{name}");
        }
        for name in [
            "___pthread_mutex_lock",
            "std::mutex::lock()",
            "SpinLock::try_lock()",
            "spin_unlock",
            "lock::Table::scan(lock::Key const&)",
            "std::vector<Lock>::push_back(Lock)",
            "block_copy",
            "clock_gettime",
        ] {
            assert!(!is_spin_lock(name), "{name}");
        }
    }
}
