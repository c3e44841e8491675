//! slow-peer on runs made for the test.

use super::*;
use crate::testing::{FUTEX, RunBuilder, SECOND, interval, user_stack, wait};
use model::{Blocked, Run, WaitSum};

const RECEIVE: Account = Account::Blocked(Blocked::SocketReceive);

fn asking(ends: &[(ChainEnd, u64)]) -> RunBuilder {
    let ns = ends.iter().map(|(_, ns)| ns).sum();
    RunBuilder::new().thread(10, 10, &[(RECEIVE, 2 * SECOND)]).wait(WaitSum {
        asked: true,
        waker_tgid: 20,
        waker_comm: "broker".into(),
        ends: ends.iter().copied().collect(),
        longest_end: ends.first().map(|(end, _)| (20, *end)),
        ..wait(10, RECEIVE, 0, 100, ns)
    })
}

#[test]
fn what_the_peer_did_is_named_and_the_fix_follows() {
    let run = asking(&[(ChainEnd::Timer, SECOND), (ChainEnd::Cpu, SECOND / 10)]).build();
    let case = Case::new(&run);
    let claim = examine(&case).unwrap();
    assert_eq!(claim.lost.get(RECEIVE), SECOND + SECOND / 10);
    assert!(claim.title.contains("broker (pid 20), which slept"), "{}", claim.title);
    assert!(claim.fix.unwrap().contains("sleeps before it answers"));
    assert_eq!(case.lost.get(RECEIVE), SECOND + SECOND / 10);
    assert_eq!(case.idle_ns, 2 * SECOND - SECOND - SECOND / 10);
}

#[test]
fn what_has_another_cause_is_left_to_it() {
    let run = asking(&[(ChainEnd::RunQueue, SECOND), (ChainEnd::Cpu, SECOND / 2)]).build();
    let case = Case::new(&run);
    assert_eq!(examine(&case).unwrap().lost.get(RECEIVE), SECOND / 2);
    assert_eq!(case.behind(|end| end == ChainEnd::RunQueue).get(RECEIVE), SECOND);
}

#[test]
fn a_stage_that_computes_limits_its_pipeline_and_one_that_sleeps_is_left() {
    let full = |end| {
        let sum = WaitSum {
            waker_tgid: 10,
            waker_tid: 11,
            waker_comm: "parser".into(),
            ends: [(end, SECOND)].into(),
            ..wait(10, ROOM, 7, 100, SECOND)
        };
        RunBuilder::new().thread(10, 10, &[(ROOM, SECOND)]).wait(sum).build()
    };
    let run = full(ChainEnd::Cpu);
    let case = Case::new(&run);
    let claim = examine(&case).unwrap();
    assert_eq!((claim.lost.get(ROOM), case.lost.get(ROOM)), (SECOND, SECOND));
    assert!(
        claim.title.contains("room in a pipe or terminal to parser (tid 11)"),
        "{}",
        claim.title
    );
    assert!(claim.fix.unwrap().contains("limits the pipeline"));
    assert!(examine(&Case::new(&full(ChainEnd::Timer))).is_err());
}

/// Thread 10 waits for thread 11 for a second in `function`; another second of such waits has no
/// stack. None of them began while it was recorded.
fn in_function(function: &str, end: ChainEnd) -> Run {
    let mut kept = interval(10, FUTEX, 0, SECOND, Some(11));
    kept.user_stack = Some(user_stack(function).id);
    let sum = WaitSum {
        waker_tgid: 10,
        waker_tid: 11,
        waker_comm: "indexer".into(),
        ends: [(end, 2 * SECOND)].into(),
        ..wait(10, FUTEX, 0x10, 100, 2 * SECOND)
    };
    let run = RunBuilder::new().thread(10, 10, &[(FUTEX, 2 * SECOND)]).kept(kept).wait(sum);
    let mut run = run.build();
    let stack = user_stack(function);
    run.stacks.insert(stack.id, stack);
    run
}

#[test]
fn names_tell_room_and_results_from_work() {
    let lost = |function, end| Case::new(&in_function(function, end)).lost.get(FUTEX);
    assert_eq!(lost("rows_put", ChainEnd::Cpu), 2 * SECOND);
    assert_eq!(lost("rows_put", ChainEnd::Outside), 0);
    assert_eq!(lost("rows_get", ChainEnd::Cpu), 0);
    assert_eq!(lost("rows", ChainEnd::Cpu), 0);
    // What one worker computes for one that waits is that one's work.
    assert_eq!(lost("Future.result", ChainEnd::Cpu), 0);
    assert_eq!(lost("Future.result", ChainEnd::Timer), 2 * SECOND);
    let run = in_function("rows_put", ChainEnd::Cpu);
    let claim = examine(&Case::new(&run)).unwrap();
    assert!(claim.title.contains("room in a queue to indexer (tid 11)"), "{}", claim.title);
    assert!(claim.excluded.iter().any(|out| out.because.contains("rows_put")));
}

#[test]
fn a_process_beyond_the_peer_is_named_though_it_has_the_same_name() {
    let title = |tid: u32| {
        let mut run = asking(&[(ChainEnd::Timer, SECOND)]).thread(21, 20, &[]);
        run = run.thread(31, 30, &[]);
        let mut run = run.build();
        run.threads.iter_mut().for_each(|thread| thread.comm = "broker".into());
        run.sums.waits[0].longest_end = Some((tid, ChainEnd::Timer));
        examine(&Case::new(&run)).unwrap().title
    };
    let (own, beyond) = (title(21), title(31));
    assert!(own.ends_with("broker (pid 20), which slept by a timer of its own"), "{own}");
    let words = "broker (pid 20), which waited for broker (tid 31), which slept by a timer of";
    assert!(beyond.contains(words), "{beyond}");
}

/// A worker that waits for its next job at a queue which is recorded, too.
#[test]
fn who_waits_at_an_idle_peer_for_what_others_send_there_waits_for_work() {
    let run = asking(&[(ChainEnd::Idle, SECOND), (ChainEnd::Cpu, SECOND / 100)]).build();
    let case = Case::new(&run);
    assert_eq!(case.lost.get(RECEIVE), SECOND / 100);
    assert!(crate::explain(&run).findings.is_empty());
    let run = asking(&[(ChainEnd::Idle, SECOND / 100), (ChainEnd::Cpu, SECOND)]).build();
    assert_eq!(examine(&Case::new(&run)).unwrap().lost.get(RECEIVE), SECOND);
}

#[test]
fn a_peer_that_is_not_recorded_is_not_blamed() {
    for end in [ChainEnd::Unwatched, ChainEnd::Outside, ChainEnd::Unknown] {
        let run = asking(&[(end, SECOND)]).build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no recorded thread"));
    }
}

#[test]
fn a_server_that_waits_for_requests_is_idle() {
    let sum = WaitSum {
        waker_tgid: 20,
        ends: [(ChainEnd::Cpu, SECOND)].into(),
        ..wait(10, RECEIVE, 0, 100, SECOND)
    };
    let run = RunBuilder::new().thread(10, 10, &[(RECEIVE, SECOND)]).wait(sum).build();
    let case = Case::new(&run);
    assert!(examine(&case).is_err());
    assert_eq!(case.idle_ns, SECOND);
}
