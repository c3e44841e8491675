//! Story 1: a stall that happens once in the life of a process.

use model::{Outlier, OutlierKind};

use crate::Case;

const CAUSE: &str = "lazy-binding";

#[test]
fn lazy_binding() {
    // A process whose limit is reached before its pages are reclaimed proves nothing.
    let mut tries = 0;
    let faulty = loop {
        let Some(case) = Case::record("lazy-binding-faulty", false) else { return };
        if case.truth.get("stalls") == 1 {
            break case;
        }
        tries += 1;
        assert!(tries < 3, "no stall in three processes: {}", case.summary());
    };

    let calls: Vec<&Outlier> = first_calls(&faulty, "sched_yield@plt");
    let [call] = calls[..] else { panic!("exactly once per process: {calls:#?}") };
    assert_eq!(call.comm, "rx-0");
    assert!(call.first_call.unwrap().major_faults > 0, "{call:?}");
    // A clock read that an interrupt came after is a little older than the account it closes.
    let accounted = call.breakdown.total();
    assert!(accounted <= call.duration_ns && accounted * 100 > call.duration_ns * 99, "{call:?}");
    let truth = faulty.truth.get("lost_ns");
    assert!(call.duration_ns <= truth + truth / 10, "{} of {truth} ns", call.duration_ns);
    assert!(call.duration_ns > truth / 2, "{} of {truth} ns", call.duration_ns);

    let finding = faulty.findings.iter().find(|finding| finding.cause == CAUSE);
    let finding = finding.unwrap_or_else(|| panic!("{}", faulty.summary()));
    let chain: Vec<&str> = finding.chain.iter().map(|link| link.text.as_str()).collect();
    let trigger = chain.last().unwrap();
    assert!(trigger.contains("librate.so:rate_timer+0x"), "{chain:?}");
    assert!(trigger.contains("(after call sched_yield@plt)"), "{chain:?}");
    let excluded = finding.ruled_out.iter().any(|other| other.cause == "file-major-fault");
    assert!(excluded, "{:?}", finding.ruled_out);

    let Some(fixed) = Case::record("lazy-binding-fixed", false) else { return };
    assert_eq!(first_calls(&fixed, "sched_yield@plt").len(), 0, "{}", fixed.summary());
    assert!(fixed.findings.iter().all(|finding| finding.cause != CAUSE), "{}", fixed.summary());
}

/// The first calls of a function, with their callers.
fn first_calls<'a>(case: &'a Case, function: &str) -> Vec<&'a Outlier> {
    let is_it = |outlier: &&Outlier| {
        let stack = outlier.user_stack.and_then(|id| case.run.stacks.get(&id));
        outlier.kind == OutlierKind::FirstCall
            && stack.is_some_and(|s| s.frames.iter().any(|f| f.after.as_deref() == Some(function)))
    };
    case.run.outliers.iter().filter(is_it).collect()
}
