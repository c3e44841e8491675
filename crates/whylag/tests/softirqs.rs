//! Softirqs: whose time they take, and whom they wake, with their time recorded and without it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::programs::program;
use common::values::Values;
use common::{Lab, Recorded};
use model::{Account, Context, Metric, RecorderPart, Run};

/// Waits for datagrams, of which there are 20, that ended in each of these contexts: (task, softirq).
fn woken_by(recorded: &Recorded) -> (usize, usize) {
    let receiver = Values::of(recorded.stdout()).get("receiver") as u32;
    let run = &recorded.run;
    let waits = run.outliers.iter().filter(|o| o.tgid == receiver && o.duration_ns > 10_000_000);
    let wakers: Vec<_> = waits.filter_map(|wait| wait.waker.as_ref()).collect();
    let sender = |tgid: u32| tgid != receiver && run.threads.iter().any(|t| t.tgid == tgid);
    let by = |context| wakers.iter().filter(move |waker| waker.context == context);
    let by_task = by(Context::Task).filter(|waker| sender(waker.tgid)).count();
    (by_task, by(Context::SoftIrq).count())
}

/// (in the accounts of the threads, ns; histograms of it).
fn time_in_softirqs(run: &Run) -> (u64, usize) {
    let is_of_softirqs = |metric: &Metric| matches!(metric, Metric::SoftIrq(_));
    let histograms = run.seconds.iter().filter(|second| is_of_softirqs(&second.metric)).count();
    (run.accounts().get(Account::SoftIrq), histograms)
}

#[test]
fn who_is_woken_by_a_softirq_is_known_where_its_time_is_not_recorded() {
    let Some(lab) = Lab::new() else { return };
    let timed = lab.record(&["--follow"], [program("datagrams")]);
    let (ns, histograms) = time_in_softirqs(&timed.run);
    assert!(ns > 0 && histograms > 0, "{ns} ns, {histograms} histograms");
    // The call that sends is known, so it is the sender that wakes.
    let (by_task, by_softirq) = woken_by(&timed);
    assert!(by_task >= 15 && by_softirq <= 5, "{by_task} by the sender, {by_softirq} by softirqs");

    let cheap = lab.record(&["--follow", "--cheap"], [program("datagrams")]);
    let mut parts = cheap.run.capabilities.iter();
    let softirqs = parts.find(|one| one.part == RecorderPart::Softirqs).unwrap();
    assert!(!softirqs.on && softirqs.because.contains("--cheap"), "{softirqs:?}");
    assert_eq!(time_in_softirqs(&cheap.run), (0, 0));
    // It is not, so the softirq could be anybody's: whom it interrupts has not woken anyone.
    let (by_task, by_softirq) = woken_by(&cheap);
    assert!(by_softirq >= 15 && by_task <= 5, "{by_task} by a thread, {by_softirq} by softirqs");
}

#[test]
fn who_is_woken_by_a_thread_is_not_put_down_to_softirqs_where_their_time_is_not_recorded() {
    let Some(lab) = Lab::new() else { return };
    let run = lab.record(&["--cheap"], [program("waits")]).run;
    // Each in a thread named after it, and let go on by another thread of the program.
    for name in ["mutex", "pi_mutex", "cond"] {
        let thread = run.threads.iter().find(|thread| thread.comm == name).unwrap();
        let waits = run.outliers.iter().filter(|o| o.tid == thread.tid);
        let longest = waits.max_by_key(|wait| wait.duration_ns).unwrap();
        let waker = longest.waker.as_ref().unwrap();
        assert_eq!(
            (waker.context, waker.tgid),
            (Context::Task, thread.tgid),
            "{name}: {longest:?}"
        );
    }
}
