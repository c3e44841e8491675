//! Softirqs: whose time they take, and whom they wake, with their time recorded and without it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Lab;
use common::programs::program;
use model::{Account, Context, Metric, RecorderPart, Run};

/// Waits for datagrams, of which there are 20, that ended in each of these contexts: (task, softirq).
fn woken_by(run: &Run) -> (usize, usize) {
    let receiver = run.threads.iter().map(|thread| thread.tgid).min().unwrap();
    let waits = run.outliers.iter().filter(|o| o.tgid == receiver && o.duration_ns > 10_000_000);
    let wakers: Vec<_> = waits.filter_map(|wait| wait.waker.as_ref()).collect();
    let sender = |tgid: u32| tgid != receiver && run.threads.iter().any(|t| t.tgid == tgid);
    let by = |context| wakers.iter().filter(move |waker| waker.context == context);
    let by_task = by(Context::Task).filter(|waker| sender(waker.tgid)).count();
    (by_task, by(Context::SoftIrq).count())
}

fn has_time_in_softirqs(run: &Run) -> bool {
    let timed = run.seconds.iter().any(|second| matches!(second.metric, Metric::SoftIrq(_)));
    timed && run.accounts().get(Account::SoftIrq) > 0
}

#[test]
fn who_is_woken_by_a_softirq_is_known_where_its_time_is_not_recorded() {
    let Some(lab) = Lab::new() else { return };
    let timed = lab.record(&["--follow"], [program("datagrams")]).run;
    assert!(has_time_in_softirqs(&timed));
    // The call that sends is known, so it is the sender that wakes.
    let (by_task, by_softirq) = woken_by(&timed);
    assert!(by_task >= 15 && by_softirq <= 5, "{by_task} by the sender, {by_softirq} by softirqs");

    let cheap = lab.record(&["--follow", "--cheap"], [program("datagrams")]).run;
    let softirqs =
        cheap.capabilities.iter().find(|one| one.part == RecorderPart::Softirqs).unwrap();
    assert!(!softirqs.on && softirqs.because.contains("--cheap"), "{softirqs:?}");
    assert!(!has_time_in_softirqs(&cheap));
    assert_eq!(cheap.accounts().get(Account::SoftIrq), 0);
    // It is not, so the softirq could be anybody's: whom it interrupts has not woken anyone.
    let (by_task, by_softirq) = woken_by(&cheap);
    assert!(by_softirq >= 15 && by_task <= 5, "{by_task} by a thread, {by_softirq} by softirqs");
}
