use model::{Account, CauseFigure, LatencyFigure};

use super::*;

const HOUR_NS: i64 = 3_600_000_000_000;

/// 60 runs, one each six hours. From the 41st on reads take four times as long, the clock is another
/// one, and the cause is there.
fn runs() -> Vec<SeriesRun> {
    let mut lot = fastrand::Rng::with_seed(3);
    let run = |at: i64| {
        let is_slow = at >= 41;
        let times = if is_slow { 4.0 } else { 1.0 } * (1.0 + 0.04 * lot.f64());
        let quantiles_ns = (1..=24).map(|q| (1e4 * f64::from(q) * times) as u64).collect();
        let mut figures = RunFigures {
            length_ns: (1e9 * times) as u64,
            wall_ns: 1_000_000,
            ..RunFigures::default()
        };
        figures
            .latencies
            .insert("syscall:read".to_owned(), LatencyFigure { count: 1_000, quantiles_ns });
        figures.accounts.insert(Account::User, 500_000 + lot.u64(0..20_000));
        let mut fact = |name: &str, value: &str| {
            figures.facts.insert(name.to_owned(), value.to_owned());
        };
        fact("host.name", "a");
        fact("clocksource.current", if is_slow { "hpet" } else { "tsc" });
        fact("restless", if lot.bool() { "x" } else { "y" });
        if is_slow {
            figures.causes.push(CauseFigure {
                cause: "slow-clocksource".to_owned(),
                lost_ns: 1,
                wall_share: 0.3 + 0.01 * lot.f64(),
                confidence: 0.9,
                minor: false,
            });
        }
        SeriesRun {
            id: RunId(at),
            target: "./server".to_owned(),
            started_unix_ns: at * 6 * HOUR_NS,
            dismissed: false,
            figures,
        }
    };
    (0..60).map(run).collect()
}

#[test]
fn a_change_has_its_date_and_what_changed_around_it() {
    let series = series(runs());
    assert_eq!(series.len(), 1);
    let [change] = &series[0].changes[..] else { panic!("{:#?}", series[0].changes) };
    assert_eq!(change.run, RunId(41));
    let names: Vec<&str> = change.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["syscall:read", "slow-clocksource"]);
    let read = &change.metrics[0];
    assert!((read.after / read.before - 4.0).abs() < 0.2 && read.p99.is_some());
    assert_eq!((change.metrics[1].before, change.metrics[1].after > 0.3), (0.0, true));
    assert_eq!(change.facts.len(), 1, "{:?}", change.facts);
    let fact = &change.facts[0];
    assert_eq!((fact.before.as_str(), fact.after.as_str()), ("tsc", "hpet"));
    assert!(!change.dismissed);
    // The last week is slow in part, the week before is not.
    let week = series[0].week.as_ref().unwrap();
    assert!(week.iter().any(|w| w.name == "p99 of syscall:read" && w.ratio.estimate > 1.5));
}

#[test]
fn dismissals_are_of_a_run_and_other_hosts_are_other_series() {
    let mut all = runs();
    all[42].dismissed = true;
    for run in &mut all[..10] {
        run.figures.facts.insert("host.name".to_owned(), "b".to_owned());
    }
    let series = series(all);
    assert_eq!(series.iter().map(|series| series.runs).collect::<Vec<_>>(), [50, 10]);
    assert!(series[0].changes[0].dismissed, "within a run of the date");
    assert!(series[1].changes.is_empty() && series[1].week.is_none());
    assert!(super::series(Vec::new()).is_empty());
}
