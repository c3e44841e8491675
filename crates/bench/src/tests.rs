//! The harness against known answers.

use std::time::Duration;

use crate::cases::{ALL, Case};
use crate::clock::Clock;
use crate::step::{self, Kind, Plan, Step};

fn case(id: &str) -> &'static Case {
    ALL.iter().find(|case| case.id == id).unwrap()
}

fn measure(id: &str, workers: usize, kind: Kind) -> Step {
    let plan = Plan {
        workers,
        kind,
        time: Duration::from_millis(200),
        pin: false,
        clock: Clock::choose(),
    };
    let case = case(id);
    let prepared = (case.prepare)(&crate::cases::Request { workers }).unwrap();
    step::run(case, prepared.as_ref(), &plan).unwrap()
}

#[test]
fn a_system_call_costs_more_than_nothing() {
    let (empty, getppid) =
        (measure("empty", 1, Kind::Threads), measure("getppid", 1, Kind::Threads));
    assert!(getppid.net_ns > 5.0 * empty.net_ns.max(1.0), "{} {}", getppid.net_ns, empty.net_ns);
    assert!(empty.operations > 10_000 && empty.single.count() * 3 == empty.operations);
    assert!(getppid.system_ns > getppid.user_ns / 10);
}

#[test]
fn processes_and_threads_are_all_counted() {
    for kind in [Kind::Threads, Kind::Processes] {
        let step = measure("getppid", 3, kind);
        assert_eq!((step.workers, step.kind), (3, kind));
        assert!(step.block_rates.len() >= 7 && step.operations > 3000, "{step:?}");
        let longest = step.outliers.first().unwrap();
        assert_eq!(Some(longest.2), step.single.max());
    }
}

#[test]
fn ids_are_unique() {
    let mut ids: Vec<_> = ALL.iter().map(|case| case.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), ALL.len());
}
