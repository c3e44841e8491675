use std::collections::BTreeMap;

use model::{Account, CauseFigure, LatencyFigure};

use super::*;

/// Runs that take so many times as long, each a little more than the one before.
fn side(name: &str, n: usize, times: f64, cause: Option<&str>) -> Compared {
    let run = |at: usize| {
        let ns = |ns: f64| (ns * times * (1.0 + at as f64 / 100.0)) as u64;
        let causes = cause.map(|cause| CauseFigure {
            cause: cause.to_owned(),
            lost_ns: 1_000,
            wall_share: 0.4,
            confidence: 0.9,
            minor: false,
        });
        let quantiles_ns = (1..=24).map(|q| ns(1e4 * f64::from(q))).collect();
        let figures = RunFigures {
            accounts: BTreeMap::from([(Account::User, ns(4e8)), (Account::HardIrq, 3_000_001)]),
            causes: causes.into_iter().collect(),
            latencies: BTreeMap::from([(
                "request tcp :80".to_owned(),
                LatencyFigure { count: 100, quantiles_ns },
            )]),
            facts: BTreeMap::from([("clocksource.current".to_owned(), name.to_owned())]),
            ..RunFigures::default()
        };
        ComparedRun { id: RunId(at as i64), header: RunHeader::default(), figures }
    };
    Compared { name: name.to_owned(), runs: (0..n).map(run).collect() }
}

#[test]
fn sums_are_exact_and_per_unit_of_work() {
    let compared = compare_recordings(&side("a", 3, 1.0, None), &side("b", 6, 1.5, None)).unwrap();
    assert_eq!(
        (compared.unit.as_str(), compared.a.units, compared.b.units),
        ("request tcp :80", 300, 600)
    );
    for (place, side) in [&compared.a, &compared.b].into_iter().enumerate() {
        let sum: u64 = compared.accounts.iter().map(|delta| delta.ns[place]).sum();
        assert_eq!(sum, side.wall_ns);
    }
    assert_eq!(compared.accounts[0].account, Account::User);
    assert_eq!(compared.accounts[1].ns, [3 * 3_000_001, 6 * 3_000_001]);
    // Three runs show nothing.
    assert!(compared.accounts.iter().all(|delta| delta.p_adjusted.is_none()));
    assert!(compared.latencies[0].p.is_none() && compared.latencies[0].shift[0].band.is_none());
    assert!(compared.warnings.iter().any(|warning| warning.starts_with("3 and 6 runs")));
}

#[test]
fn with_enough_runs_tests_say_what_differs() {
    let (a, b) = (side("tsc", 6, 1.0, None), side("hpet", 6, 1.5, Some("slow-clocksource")));
    let compared = compare_recordings(&a, &b).unwrap();
    assert!(compared.accounts[0].p_adjusted.unwrap() < 0.01);
    assert_eq!(compared.accounts[1].p_adjusted, Some(1.0));
    let latency = &compared.latencies[0];
    assert!(latency.p.unwrap() < 0.01 && (latency.shift[10].ratio - 1.5).abs() < 0.01);
    let [low, high] = latency.shift[10].band.unwrap();
    assert!(low > 1.3 && high < 1.7, "{low} {high}");
    let cause = &compared.causes[0];
    assert_eq!((cause.runs, cause.share[0].to_bits()), ([0, 6], 0.0f64.to_bits()));
    assert!((cause.share[1] - 0.4).abs() < 1e-9);
    assert_eq!(compared.differences[0].what, "clocksource.current");
    assert!(compared.summary.contains("slow-clocksource came (in 0 of 6 runs, in 6 of 6)"));
    assert!(compared.summary.starts_with("hpet has 49"), "{}", compared.summary);
    assert_eq!(compared.warnings, [""; 0]);
}

#[test]
fn what_does_not_mean_the_same_is_refused() {
    let (a, mut b) = (side("a", 1, 1.0, None), side("b", 1, 1.0, None));
    b.runs[0].id = RunId(9);
    b.runs[0].header.sampled = true;
    let refused = compare_recordings(&a, &b).unwrap_err();
    assert_eq!(refused, CannotCompare::SampledAndRecorded(RunId(9), RunId(0)));
    b.runs[0].header.target = Target::Jitter(Vec::new());
    assert!(matches!(compare_recordings(&a, &b), Err(CannotCompare::NoRecording(RunId(9), _))));
    b.runs[0].header.target = Target::Bench(Vec::new());
    assert_eq!(compare_recordings(&a, &b).unwrap_err(), CannotCompare::Benchmark(RunId(9)));
}
