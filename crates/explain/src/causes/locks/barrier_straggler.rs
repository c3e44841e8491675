//! barrier-straggler: threads wait at a barrier for the one that comes last.
//!
//! A step of a parallel program is over when the last thread has done its part. If the parts are not
//! alike, or one thread is held up, all others wait for it, in each step; the time is that thread's,
//! and no lock is in the way.
//!
//! # Evidence
//!
//! Sleeps on futex words on which one wake-up releases several threads, by a thread that has waited
//! there itself, and all of these go on. One thread that is last in every step never waits there:
//! then it is known by its stacks, most of which lead through the same calls as those of the others
//! when they do not wait (a thread that hands out work has others). Where they wait in a function of barriers
//! (pthread_barrier_wait, std::barrier, CyclicBarrier.await) that is enough, also of two threads. The waits are divided by what
//! that thread did meanwhile (ran, slept, waited for a disk, for another lock). Where it waited for a
//! CPU, was throttled or stopped, the time is left to those causes. If the threads that were woken
//! check a condition and sleep again, they are queueing: futex-convoy. Some thread always comes last:
//! less than a twentieth of the threads' time is no finding.
//!
//! # Without whylag
//!
//!     perf trace -e futex -p PID                 # one wake-up of many threads at the end of each step
//!     top -H -p PID                              # one thread works, the others sleep
//!
//! # Sources
//!
//! pthread_barrier_wait(3); nptl/pthread_barrier_wait.c of glibc; kernel/futex/waitwake.c.

use model::{Account, Accounts, Blocked, ChainEnd, RecorderPart};

use crate::case::Case;
use crate::case::barriers::{Barrier, barriers};
use crate::case::beyond::{Holders, Whose};
use crate::case::chain_ends::is_holders;
use crate::case::lock_word::LockWord;
use crate::case::looks::{FIX_OF_LOOKS, HasIt, did, doubt_looks};

use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::BARRIER_STRAGGLER,
    title: "threads wait at a barrier for the one that comes last",
    fix: "Divide the work so that all arrive together (smaller pieces that are taken as threads get \
          free), or let threads go on without those that are late.",
    reproduce: "mysteries/bin/barrier-straggler-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[LookAlike {
        cause: ids::FUTEX_CONVOY,
        tell_apart: "see who is woken ('perf trace -e futex -p PID'): a lock wakes one thread, or \
                     those that it wakes sleep again at once; a barrier wakes all, and all go on",
        mutual: true,
    }],
    symptom: true,
    examine,
};

const FUTEX: Account = Account::Blocked(Blocked::Futex);
/// Somebody always comes last. Below this part of the time of its process, one of so many, the parts
/// are alike.
const ALIKE: u64 = 20;
/// Barriers worth a line.
const SHOWN: usize = 3;

/// What is lost to whoever came last, as far as that one was recorded.
fn own_ns(barrier: &LockWord) -> u64 {
    barrier.ends.part_of(barrier.ns, |end| end.is_recorded() && is_holders(end))
}

/// What to do follows what the last one did.
fn fix(end: ChainEnd) -> Option<&'static str> {
    match end {
        ChainEnd::Timer => Some(
            "The last one sleeps by a timer of its own before it comes: take that out of the step.",
        ),
        ChainEnd::Timeout => {
            Some("The last one waits until a timeout before it comes: take that out of the step.")
        }
        ChainEnd::Disk | ChainEnd::Fault => Some(
            "The last one waits for a disk before it comes: read ahead, write in a thread that is \
             not part of the step.",
        ),
        _ => None,
    }
}

fn examine(case: &Case) -> Verdict {
    let all = barriers(case.run);
    let is_uneven = |barrier: &&Barrier| {
        let life = case.process(barrier.word.tgid).map_or(0, Accounts::total);
        own_ns(&barrier.word) > life / ALIKE
    };
    let found: Vec<&Barrier> = all.iter().filter(is_uneven).collect();
    let Some(first) = found.iter().map(|barrier| &barrier.word).max_by_key(|word| own_ns(word))
    else {
        return Err(Absent(match all.first().map(|barrier| &barrier.word) {
            None => "no futex word behaves like a barrier".to_owned(),
            Some(word) if own_ns(word) > 0 => format!(
                "threads come to their barriers together: they waited {} in all for the last one, \
                 under a twentieth of the time",
                duration(own_ns(word))
            ),
            Some(word) => format!(
                "who came last could not go on, or was not recorded: it {}",
                word.ends.in_words("").unwrap_or_default().trim_start()
            ),
        }));
    };
    let lost: Accounts = found.iter().map(|barrier| (FUTEX, own_ns(&barrier.word))).collect();
    let waits = found.iter().fold(0u64, |sum, barrier| sum.saturating_add(barrier.word.count));
    let end = first.ends.main().filter(|end| is_holders(*end)).unwrap_or(ChainEnd::Unknown);
    let process = case.process_name(first.tgid);
    let holders = Holders::of(case.whole(), first);
    let whose = holders.whose(&first.ends, end, case.whole());
    let has_it = HasIt::of(&first.ends, end, first.tgid, case.whole());
    let which = whose.which(&did(end, has_it.as_ref()));
    let title = format!("threads of {process} wait at a barrier for the last one, {which}");
    let total = lost.total();
    let mut claim = Claim::new(title, lost, waits);
    claim.takes_idle = true;
    doubt_looks(has_it.as_ref(), &mut claim);
    claim.fix = match has_it {
        Some(_) => Some(FIX_OF_LOOKS),
        None => fix(end).filter(|_| whose == Whose::Holders),
    };
    claim.mechanism(format!(
        "{} asleep until the last one came: {}, mean {}",
        duration(total),
        counted(waits, "wait"),
        mean(first.ns, first.count)
    ));
    let whoever = whose.or_beyond("while others waited, whoever came last");
    if let Some(ends) = first.ends.in_words(&whoever) {
        claim.trigger(ends);
    }
    if let Some(longest) = first.ends.longest_in_words(case.whole()) {
        claim.trigger(longest);
    }
    for barrier in found.iter().take(SHOWN) {
        saw(barrier, case, &mut claim);
    }
    rule_out(first, &mut claim);
    Ok(claim)
}

fn saw(barrier: &Barrier, case: &Case, claim: &mut Claim) {
    let word = &barrier.word;
    claim.saw(
        format!(
            "barrier at {:#x}: {}, {} asleep, longest {}; {} of them ended together with others, {} \
             by a thread that had waited there itself",
            word.address,
            counted(word.count, "wait"),
            duration(word.ns),
            duration(word.max_ns),
            percent(word.many.min(word.count), word.count),
            percent(word.by_waiter.min(word.count), word.count)
        ),
        "futex arguments at sched_switch, waker at sched_waking",
    );
    let Some(late) = barrier.late else { return };
    let comm = case.run.threads.iter().find(|thread| thread.tid == late);
    let comm = comm.map_or("a thread", |thread| &thread.comm);
    claim.saw(
        format!(
            "{comm} (tid {late}) ended most of them and never waited there: it is always the last. It \
             does what the others do before they wait, by the same calls of the program"
        ),
        "user stacks of sleeps and samples",
    );
}

fn rule_out(first: &LockWord, claim: &mut Claim) {
    claim.rule_out(
        ids::FUTEX_CONVOY,
        format!(
            "after {} of the {} that ended together with others the thread went on and did not \
             wait again",
            percent(first.many.saturating_sub(first.again), first.many),
            counted(first.many, "wait")
        ),
    );
    let queued = first.ends.sum_of(|end| end == ChainEnd::RunQueue);
    let total = first.ends.total();
    if queued + first.ends.unknown() < total / 5 {
        let because = format!(
            "the last one was ready and had no CPU for {} of {} only",
            duration(queued),
            duration(total)
        );
        claim.rule_out(ids::CPU_RUNQUEUE, because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, wait};
    use model::WaitSum;

    fn barrier(ends: &[(ChainEnd, u64)]) -> RunBuilder {
        let ns = ends.iter().map(|(_, ns)| ns).sum();
        RunBuilder::new().thread(10, 10, &[(FUTEX, 4 * SECOND)]).wait(WaitSum {
            waker_tgid: 10,
            by_waiter: 300,
            many: 200,
            ends: ends.iter().copied().collect(),
            waker_tid: 10,
            longest_end: ends.first().map(|(end, _)| (10, *end)),
            ..wait(10, FUTEX, 0x10, 300, ns)
        })
    }

    #[test]
    fn claimed_is_what_the_last_one_did_and_the_fix_follows() {
        let run = barrier(&[(ChainEnd::Timer, 3 * SECOND), (ChainEnd::RunQueue, SECOND)]).build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(FUTEX), 3 * SECOND);
        assert!(claim.title.contains("which slept by a timer"), "{}", claim.title);
        assert!(claim.fix.unwrap().contains("out of the step"));
        assert!(claim.ruled_out.iter().any(|other| other.cause == "futex-convoy"));
        assert!(claim.ruled_out.iter().all(|other| other.cause != "cpu-runqueue"));
    }

    #[test]
    fn a_timer_of_somebody_beyond_the_last_one_is_not_called_its_own() {
        let mut run = barrier(&[(ChainEnd::Timer, 3 * SECOND)]).thread(77, 70, &[]).build();
        run.sums.waits[0].waker_tid = 11;
        run.sums.waits[0].longest_end = Some((77, ChainEnd::Timer));
        let claim = examine(&Case::new(&run)).unwrap();
        let title = "the last one, which waited for thread-77 (tid 77), which slept by a timer of";
        assert!(claim.title.contains(title), "{}", claim.title);
        assert_eq!(claim.fix, None);
    }

    #[test]
    fn threads_that_come_together_have_no_straggler() {
        let run = barrier(&[(ChainEnd::Cpu, SECOND / 10)]).build();
        assert!(
            examine(&Case::new(&run)).unwrap_err().0.contains("come to their barriers together")
        );
    }

    #[test]
    fn a_last_one_without_a_cpu_has_another_cause() {
        let run = barrier(&[(ChainEnd::RunQueue, SECOND)]).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("could not go on"));
    }

    #[test]
    fn a_lock_is_no_barrier() {
        let lock = WaitSum {
            by_waiter: 100,
            waker_tgid: 10,
            ends: [(ChainEnd::Cpu, SECOND)].into(),
            ..wait(10, FUTEX, 0x10, 100, SECOND)
        };
        let run = RunBuilder::new().thread(10, 10, &[(FUTEX, SECOND)]).wait(lock).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no futex word"));
    }
}
