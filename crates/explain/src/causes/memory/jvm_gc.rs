//! jvm-gc: the threads of a Java program stand still while the JVM collects its garbage.
//!
//! Known by the thread that ended the waits, and by the collector's CPU time. A JVM that stops
//! its threads and then waits for one that is late to stop uses none: that is not claimed.
//!
//! # Evidence
//!
//! Sleeps of the program's threads that the thread named VM Thread ended; and the CPU time of the
//! collector's threads, which has to be a fifth of the time that the program stood still, or more.
//! A request has lost the part of its time in which the program stood still. It is a finding if the
//! program stood still for a twentieth of the recording, however many of its threads were idle.
//!
//! # Without whylag
//!
//!     java -Xlog:gc*,safepoint ...               # each pause, and how long it took to stop
//!     jcmd PID GC.heap_info
//!     jstat -gcutil PID 1000
//!
//! # Sources
//!
//! the manual of java (-Xlog, -XX:+UseZGC); src/hotspot/share/runtime/safepoint.cpp of OpenJDK.

use model::{Account, Accounts, Blocked, Outlier, RecorderPart};

use crate::case::Case;
use crate::case::in_words::in_words;
use crate::case::safepoints::{VM_THREAD, is_stop, stood_still};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::causes::memory::jvm_stops::{
    asleep_ns, behind_stops, collected, cost_of_stops, in_words_of_stops,
};
use crate::text::duration;

pub const CAUSE: Cause = Cause {
    id: ids::JVM_GC,
    title: "a Java program stands still while its garbage is collected",
    fix: "Make less garbage on the hot path, and keep less of what is made (-Xlog:gc* says how much \
          each collection copied). Or use a collector that works while the program runs (-XX:+UseZGC, \
          -XX:+UseShenandoahGC), with CPUs to spare for it.",
    reproduce: "make exchange FAULT='--garbage --folder /dev/shm'",
    needs: Needs::parts(&[RecorderPart::Threads]),
    look_alikes: &[LookAlike {
        cause: ids::CPU_RUNQUEUE,
        tell_apart: "have the JVM log its pauses (-Xlog:gc,safepoint): a stall outside of them \
                         is no collection",
        mutual: false,
    }],
    symptom: false,
    examine,
};

const FUTEX: Account = Account::Blocked(Blocked::Futex);
/// The collector used a CPU for this part of the time that the program stood still, at least.
const PART: u64 = 5;

fn examine(case: &Case) -> Verdict {
    let stops: Vec<&Outlier> = case.run.outliers.iter().filter(|o| is_stop(o)).collect();
    let Some(longest) = stops.iter().max_by_key(|stop| stop.duration_ns) else {
        return Err(Absent(format!(
            "no thread was seen to sleep until the JVM's '{VM_THREAD}' woke it"
        )));
    };
    let tgid = longest.tgid;
    // The part that is examined may have no thread of the JVM's own.
    let spans = stood_still(case.whole(), tgid);
    let stood_ns = spans.iter().map(|span| span.ns()).fold(0, u64::saturating_add);
    let collected_ns = collected(case.whole(), tgid);
    if collected_ns < stood_ns / PART {
        return Err(Absent(format!(
            "{} stood still for {} until its JVM let it go on, but the collector used only {} of \
             CPU time: one of its threads was late to stop, or the JVM did other work",
            case.process_name(tgid),
            duration(stood_ns),
            duration(collected_ns)
        )));
    }

    let behind_ns = behind_stops(case.run, tgid);
    let ns = asleep_ns(&stops).saturating_add(behind_ns);
    let title = format!("{} stands still while its garbage is collected", case.process_name(tgid));
    let mut claim = Claim::new(title, Accounts::from_iter([(FUTEX, ns)]), stops.len() as u64);
    claim.stood_still_ns = stood_ns;
    claim.requests = cost_of_stops(case, tgid, &spans);
    claim.mechanism(in_words_of_stops(&stops, longest));
    claim.trigger(format!(
        "the collector used {} of CPU time over the run; in the stops that were looked at the \
         program stood still for {}",
        duration(collected_ns),
        duration(stood_ns)
    ));
    claim.saw(in_words(case, longest), "who woke it (sched_waking)");
    claim.saw_if(
        (behind_ns > 0).then(|| {
            format!(
                "{} more in waits for threads that waited for '{VM_THREAD}' themselves, which ran on a CPU",
                duration(behind_ns)
            )
        }),
        "waker at sched_waking",
    );
    claim.rule_out(
        ids::FUTEX_CONVOY,
        "these waits were for the JVM's own thread in the end, not for an owner of a lock that did something else"
            .to_owned(),
    );
    claim.doubt(0.9, "stops shorter than the shortest interval that was kept are not in it");
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use model::{ChainEnd, Run, WaitSum};

    use super::*;
    use crate::testing::requests::{request, served};
    use crate::testing::{RunBuilder, SECOND, USER, interval, wait};

    const MS: u64 = 1_000_000;

    /// A thread that slept for 60 ms, ended by thread 5 of its own process.
    fn stop(tid: u32, comm: &str, waker: &str) -> Outlier {
        let mut stop = interval(tid, FUTEX, SECOND, 60 * MS, Some(5));
        stop.breakdown = [(FUTEX, 60 * MS)].into_iter().collect();
        stop.waker.as_mut().unwrap().comm = waker.into();
        stop.comm = comm.into();
        stop
    }

    fn run(stops: Vec<Outlier>, collected_ns: u64) -> Run {
        let mut builder = RunBuilder::new()
            .thread(5, 10, &[(USER, collected_ns)])
            .thread(11, 10, &[(FUTEX, 3 * SECOND)])
            .thread(12, 10, &[(FUTEX, 3 * SECOND)]);
        for stop in stops {
            builder = builder.kept(stop);
        }
        let mut run = builder.build();
        run.threads[0].comm = VM_THREAD.into();
        run
    }

    #[test]
    fn threads_that_the_vm_thread_let_go_on_had_lost_that_time() {
        let stops = vec![stop(11, "matching", VM_THREAD), stop(12, "journal", VM_THREAD)];
        let run = run(stops, 50 * MS);
        let case = Case::new(&run);
        let claim = examine(&case).unwrap();
        assert_eq!(claim.lost.get(FUTEX), 120 * MS);
        assert_eq!(case.claimable().get(FUTEX), 120 * MS, "it is lost, not idle");
        assert!(claim.chain[1].text.contains("stood still for 60.0 ms"), "{:?}", claim.chain);
    }

    /// The heap's lock: whoever has it has asked for a collection, and waits for that.
    #[test]
    fn waits_for_who_waits_for_a_collection_are_of_it() {
        let behind = |tid: u32, end: ChainEnd| {
            let mut run = run(vec![stop(11, "matching", VM_THREAD)], SECOND);
            run.sums.waits.push(WaitSum {
                lock_like: 10,
                waker_tgid: 10,
                waker_tid: 11,
                usual_end: Some((tid, end)),
                ends: [(end, 200 * MS)].into(),
                ..wait(10, FUTEX, 0x10, 10, 200 * MS)
            });
            examine(&Case::new(&run)).unwrap().lost.get(FUTEX)
        };
        assert_eq!(behind(5, ChainEnd::Cpu), 260 * MS);
        assert_eq!(behind(12, ChainEnd::Cpu), 60 * MS, "whoever has it computes itself");
        assert_eq!(behind(5, ChainEnd::Timer), 60 * MS);
    }

    /// Most of its threads had nothing to do: what counts is that all stood still.
    #[test]
    fn a_program_that_stands_still_is_named_however_many_threads_it_has() {
        let mut run = run((0..5).map(|n| at(11, n)).chain([at(12, 0)]).collect(), SECOND);
        assert_eq!(crate::explain(&run).findings[0].cause, "jvm-gc");
        run.outliers.retain(|stop| stop.start_ns == SECOND);
        assert!(crate::explain(&run).findings.is_empty(), "60 ms of 4 s");
    }

    /// Requests that the stops lie in have lost that time, whatever else their threads waited for.
    #[test]
    fn requests_lose_what_lies_in_them() {
        let stops: Vec<Outlier> = (0..20).map(|n| at(11, n)).collect();
        let requests = (0..20).map(|n| request(1, 12, 1000 + 100 * n, 0, 90)).collect();
        let run = served(run(stops, SECOND), requests);
        let found = crate::explain(&run);
        assert_eq!(found.findings[0].cause, "jvm-gc");
        let cost = found.findings[0].requests.as_ref().unwrap();
        assert_eq!((cost.with, cost.ns), (20, 20 * 60 * MS));
    }

    fn at(tid: u32, n: u64) -> Outlier {
        Outlier { start_ns: SECOND + n * 100 * MS, ..stop(tid, "matching", VM_THREAD) }
    }

    #[test]
    fn waits_that_others_end_and_the_collectors_own_are_none() {
        let stops = vec![
            stop(11, "matching", "journal"),
            stop(12, "GC Thread#0", VM_THREAD),
            stop(12, "Reference Handl", VM_THREAD),
        ];
        let run = run(stops, SECOND);
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no thread was seen"));
    }

    #[test]
    fn a_stop_without_a_collection_is_not_this() {
        let run = run(vec![stop(11, "matching", VM_THREAD)], MS);
        let Absent(missing) = examine(&Case::new(&run)).unwrap_err();
        assert!(missing.contains("late to stop"), "{missing}");
    }
}
