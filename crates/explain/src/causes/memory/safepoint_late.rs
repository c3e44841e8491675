//! safepoint-late: a Java program stands still until one of its threads reaches a safepoint.
//!
//! To collect garbage, and for other work, the JVM stops all threads of the program. Each looks at its
//! next safepoint poll whether it has to. A loop with an int counter may be compiled without polls, and
//! so may a large copy or fill of an array: until that has ended, all others stand still and nothing is
//! collected. The log of the collector shows a short pause.
//!
//! # Evidence
//!
//! Threads that slept until the JVM's "VM Thread" let them go on, while its collectors used next to no
//! CPU and that thread itself slept by timers, as it does between two looks at the late one; and the
//! thread of the program that was on a CPU for most of the time in which the others stood still.
//!
//! # Without whylag
//!
//!     java -Xlog:safepoint ...                   # "Reaching safepoint: ... ns" of each
//!     java -XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100 ...   # names the late thread
//!
//! # Sources
//!
//! OpenJDK: src/hotspot/share/runtime/safepoint.cpp (SafepointSynchronize::synchronize_threads, back_off);
//! JEP 312; the manual of java (-XX:+UseCountedLoopSafepoints).

use model::{Account, Accounts, Blocked, Outlier, RecorderPart, Run, ThreadAccounts};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::case::lost::{Class, class};
use crate::case::requests::intervals_by_thread;
use crate::case::safepoints::{VM_THREAD, is_of_jvm, is_stop, stood_still};
use crate::case::spans::{Span, within_all};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::jvm_stops::{asleep_ns, collected, cost_of_stops, in_words_of_stops};
use crate::text::{duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SAFEPOINT_LATE,
    title: "a Java program stands still until one of its threads reaches a safepoint",
    fix: "Let the thread look more often whether it has to stop: -XX:+UseCountedLoopSafepoints, a loop \
          counter of type long, or a call that is not inlined in the loop; copy or clear large arrays in \
          pieces.",
    reproduce: "make test-servers ONLY=java_safepoint_late",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[LookAlike {
        cause: ids::JVM_GC,
        tell_apart: "have the JVM log both (-Xlog:gc,safepoint): the time until the safepoint is \
                     reached is no collection",
        mutual: true,
    }],
    symptom: false,
    examine,
};

const FUTEX: Account = Account::Blocked(Blocked::Futex);
const SLEEP: Account = Account::Blocked(Blocked::TimerSleep);
/// The collectors used a CPU for less than this part of the time in which the program stood still.
const PART: u64 = 5;
/// The JVM's thread slept by timers for that part of it at least.
const NAPS: u64 = 3;
/// The late thread did not sleep for so much of it, of 10.
const RAN: u64 = 6;

/// The thread of which the others waited, and for how long of that it was seen to sleep or wait nowhere.
struct Late<'a> {
    thread: &'a ThreadAccounts,
    ran_ns: u64,
}

fn examine(case: &Case) -> Verdict {
    let stops: Vec<&Outlier> = case.run.outliers.iter().filter(|o| is_stop(o)).collect();
    let Some(longest) = stops.iter().max_by_key(|stop| stop.duration_ns) else {
        return Err(Absent(format!(
            "no thread was seen to sleep until the JVM's '{VM_THREAD}' woke it"
        )));
    };
    let (run, tgid) = (case.whole(), longest.tgid);
    let spans = stood_still(run, tgid);
    let stood_ns = spans.iter().map(|span| span.ns()).fold(0, u64::saturating_add);
    let (collected_ns, naps_ns) = (collected(run, tgid), naps(run, tgid));
    if collected_ns >= stood_ns / PART || naps_ns < stood_ns / NAPS {
        return Err(Absent(format!(
            "{} stood still for {}, of which its collectors used {} of CPU time and '{VM_THREAD}' \
             slept by timers, as it does until all threads have stopped, for {}",
            case.process_name(tgid),
            duration(stood_ns),
            duration(collected_ns),
            duration(naps_ns)
        )));
    }
    let Some(late) = late(run, tgid, &spans).filter(|late| late.ran_ns >= stood_ns / 10 * RAN)
    else {
        return Err(Absent(format!(
            "{} stood still for {} until all its threads had stopped, but none of them was on a CPU for \
             most of that",
            case.process_name(tgid),
            duration(stood_ns)
        )));
    };

    let ns = asleep_ns(&stops);
    let who = format!("{} (tid {})", late.thread.comm, late.thread.tid);
    let process = case.process_name(tgid);
    let title = format!("{process} stands still until its thread {who} reaches a safepoint");
    let mut claim = Claim::new(title, Accounts::from_iter([(FUTEX, ns)]), stops.len() as u64);
    claim.stood_still_ns = stood_ns;
    claim.requests = cost_of_stops(case, tgid, &spans);
    claim.mechanism(in_words_of_stops(&stops, longest));
    claim.trigger(format!(
        "{who} was on a CPU, or waiting for short times, for {} ({}) of the {} in which others stood \
         still",
        duration(late.ran_ns),
        percent(late.ran_ns, stood_ns),
        duration(stood_ns)
    ));
    claim.trigger(format!(
        "'{VM_THREAD}' looked now and then whether all had stopped, and slept by timers in between: {} \
         over the run",
        duration(naps_ns)
    ));
    claim.saw(in_words(case, longest), "who woke it (sched_waking)");
    claim.rule_out(
        ids::JVM_GC,
        format!("its collectors used {} of CPU time", duration(collected_ns)),
    );
    claim.doubt(
        0.9,
        "a thread in native code stops nobody, and looks the same if it runs all the time",
    );
    Ok(claim)
}

/// What the JVM's thread slept by timers.
fn naps(run: &Run, tgid: u32) -> u64 {
    let threads = run.threads.iter().filter(|t| t.tgid == tgid && t.comm == VM_THREAD);
    threads.map(|thread| thread.accounts.get(SLEEP)).fold(0, u64::saturating_add)
}

/// The thread of the program that slept and waited least while others stood still.
fn late<'a>(run: &'a Run, tgid: u32, spans: &[Span]) -> Option<Late<'a>> {
    let by_thread = intervals_by_thread(run);
    let own = run.threads.iter().filter(|thread| thread.tgid == tgid && !is_of_jvm(&thread.comm));
    let ran = own.map(|thread| {
        let lived = Span { from_ns: thread.first_ns, to_ns: thread.last_ns };
        let here = within_all(lived, spans);
        let waits = by_thread.get(&thread.tid).into_iter().flatten();
        let away = waits
            .map(|wait| within_all(Span { from_ns: wait.start_ns, to_ns: wait.end_ns() }, spans));
        let away = away.fold(0, u64::saturating_add);
        // A wait that has not ended is no interval.
        let worked = thread.accounts.sum_of(|account| class(account) == Class::Work);
        Late { thread, ran_ns: here.saturating_sub(away).min(worked) }
    });
    ran.max_by_key(|late| late.ran_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, interval};

    const MS: u64 = 1_000_000;

    /// Ten times a thread stands still for 60 ms; the JVM's thread naps for so long, and `other` waits
    /// for so much of each.
    fn run(collected_ns: u64, naps_ns: u64, other_ns: u64) -> Run {
        let mut run = RunBuilder::new()
            .thread(5, 10, &[(USER, collected_ns), (SLEEP, naps_ns)])
            .thread(11, 10, &[(FUTEX, 4 * SECOND)])
            .thread(12, 10, &[(USER, 4 * SECOND)]);
        for n in 0..10 {
            let mut stop = interval(11, FUTEX, n * 100 * MS, 60 * MS, Some(5));
            stop.waker.iter_mut().for_each(|waker| waker.comm = VM_THREAD.to_owned());
            run = run.kept(stop).kept(interval(12, SLEEP, n * 100 * MS, other_ns, None));
        }
        let mut run = run.build();
        run.threads[0].comm = VM_THREAD.into();
        run
    }

    #[test]
    fn the_thread_that_runs_while_others_stand_still_is_late() {
        let run = run(MS, 600 * MS, MS);
        let claim = examine(&Case::new(&run)).unwrap();
        assert!(
            claim.title.ends_with("thread thread-12 (tid 12) reaches a safepoint"),
            "{}",
            claim.title
        );
        assert_eq!(claim.lost.get(FUTEX), 600 * MS);
        assert_eq!(crate::explain(&run).findings[0].cause, "safepoint-late");
    }

    #[test]
    fn collections_other_work_of_the_jvm_and_threads_that_sleep_are_not_this() {
        let missing = |run: Run| examine(&Case::new(&run)).unwrap_err().0;
        assert!(missing(run(500 * MS, 600 * MS, MS)).contains("500 ms of CPU time"));
        assert!(missing(run(MS, 10 * MS, MS)).contains("slept by timers"));
        assert!(missing(run(MS, 600 * MS, 50 * MS)).contains("none of them was on a CPU"));
    }
}
