//! The lock costs what the program says, told apart from waiting for a CPU. A crowd of threads that
//! begin and end has so many other costs, and the recorder on two CPUs adds to them, that the cause
//! need not be above the floor of a finding: what it claims is looked at.

use serde_json::Value;

use crate::common::Lab;
use crate::common::programs::mystery;
use crate::common::quiet::alone;
use crate::common::values::Values;

const CAUSE: &str = "proc-scan-vs-fork";

#[test]
fn proc_scan_vs_fork() {
    let Some(faulty) = claimed("faulty") else { return };
    let Some(fixed) = claimed("fixed") else { return };
    println!("claimed and truth: {faulty:?}, fixed {fixed:?}");
    assert!(faulty.1 > 100_000_000, "the fault did not happen: {faulty:?}");
    let part = faulty.0 as f64 / faulty.1 as f64;
    assert!((0.6..1.4).contains(&part), "{part:.2} of the truth: {faulty:?}");
    assert!(fixed.0 * 5 < faulty.0, "{fixed:?} against {faulty:?}");
}

/// What the cause claims, and what the program lost by its own clock.
fn claimed(twin: &str) -> Option<(u64, u64)> {
    let lab = Lab::new()?;
    let program = mystery(&format!("{CAUSE}-{twin}"));
    let recorded = alone(|| lab.record(&[], [program.as_os_str(), "2".as_ref()]))?;
    let truth = Values::of(recorded.stdout().lines().last().unwrap()).get("lost_ns");
    let answer = lab.answer("explain", &["--why-not", CAUSE, "--json"]);
    let standing = serde_json::from_slice::<Value>(&answer).unwrap()["standing"].take();
    let ns = match standing["verdict"].as_str().unwrap() {
        "finding" => standing["lost_ns"].as_u64().unwrap(),
        "below_floor" => standing["claimed_ns"].as_u64().unwrap(),
        _ => 0,
    };
    Some((ns, truth))
}
