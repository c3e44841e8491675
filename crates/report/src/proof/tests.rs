use model::{
    Better, CauseProof, CauseVerdict, Difference, LatencyChange, Measured, Proof, ProofVerdict,
    RunId, Trial, TrialSide,
};
use stats::Interval;

use super::write;
use crate::Style;

fn interval(estimate: f64) -> Interval {
    Interval { estimate, low: estimate * 0.95, high: estimate * 1.05, confidence: 0.95 }
}

fn measured(pairs: usize) -> Measured {
    Measured {
        what: "wall time".into(),
        better: Better::Lower,
        before: 1.25,
        after: 0.75,
        ratio: (pairs > 5).then(|| interval(0.6)),
        p: (pairs > 5).then_some(0.002),
        pairs,
        verdict: ProofVerdict::Better,
        missing: String::new(),
    }
}

fn proof() -> Proof {
    let trial = |run| Trial {
        side: TrialSide::Before,
        pair: 0,
        run: Some(RunId(run)),
        wall_ns: 1,
        metric: None,
        figures: None,
    };
    Proof {
        summary: "Proven: wall time fell by 40 % (37 % to 43 %), and lazy-binding is gone.".into(),
        change: "LD_BIND_NOW=1\u{1b}[31m".into(),
        seed: Some(7),
        measured: measured(10),
        unrecorded: Some(measured(2)),
        recording: Some([1.08, 1.05]),
        cause: Some(CauseProof {
            cause: "lazy-binding".into(),
            before: (10, 10),
            after: (0, 10),
            p: 1.0e-5,
            at_most: 0.26,
            share_before: 0.31,
            share_after: 0.0,
            ratio: None,
            verdict: CauseVerdict::Gone,
        }),
        other_causes: Vec::new(),
        accounts: Vec::new(),
        latencies: vec![LatencyChange {
            name: "syscall:recvmsg".into(),
            count: [120_000, 119_000],
            shift: vec![(0.5, interval(0.9)); 12],
            p: 0.002,
        }],
        differences: vec![Difference {
            what: "clocksource.current".into(),
            before: "hpet".into(),
            after: "tsc".into(),
        }],
        warnings: vec!["the order of the runs was not drawn by lot".into()],
        trials: vec![trial(12), trial(13)],
    }
}

#[test]
fn a_proof_is_readable_at_80_columns() {
    let mut out = Vec::new();
    write(&mut out, &proof(), &Style { width: 80, color: false }).unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for part in [
        "Proven: wall time fell by 40 %",
        "warning: the order",
        "0.60x (0.57x to 0.63x)",
        "without whylag",
        "10 of 10  0 of 10",
        "<0.001",
        "clocksource.current: hpet before, tsc after",
        "Runs 12 to 13 of the store",
        "--seed 7",
        "Recorded it takes 1.08x as long before, 1.05x after (medians, n = 10 and 2)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\u{1b}'), "what came from outside is escaped");
}
