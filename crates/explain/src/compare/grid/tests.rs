use model::CauseFigure;

use super::*;

/// 28 runs: every fourth one is lost, has the cause, unbound calls and one of 60 facts that are
/// drawn by lot.
fn runs() -> Vec<GridRun> {
    let mut lot = fastrand::Rng::with_seed(5);
    let run = |at: i64| {
        let is_bad = at % 4 == 0;
        let mut figures = RunFigures {
            wall_ns: 1_000_000,
            exit_status: Some(i32::from(is_bad)),
            ..RunFigures::default()
        };
        figures.accounts.insert(Account::User, 500_000 + lot.u64(0..50_000));
        let mut fact = |name: String, value: String| figures.facts.insert(name, value);
        fact("host.name".to_owned(), if at < 24 { "a" } else { "b" }.to_owned());
        fact("binary.binding".to_owned(), if is_bad { "lazy" } else { "now" }.to_owned());
        for n in 0..60 {
            fact(format!("noise.{n}"), lot.bool().to_string());
        }
        if is_bad {
            figures.causes.push(CauseFigure {
                cause: "lazy-binding".to_owned(),
                lost_ns: 1,
                wall_share: 0.3,
                confidence: 0.9,
                minor: false,
            });
        }
        GridRun { id: RunId(at), target: "./server".to_owned(), figures }
    };
    (0..28).map(run).collect()
}

#[test]
fn groups_are_of_one_host_and_the_fact_that_splits_is_found_among_many() {
    let grids = grids(&runs(), &GridRules::default());
    assert_eq!(grids.len(), 2);
    let (large, small) = (&grids[0], &grids[1]);
    assert_eq!((large.runs.len(), small.runs.len()), (24, 4));
    assert_eq!(large.outcomes.iter().filter(|o| **o == Outcome::Lost).count(), 6);
    let split = &large.splits[0];
    assert_eq!(split.what, "binary.binding = lazy");
    assert_eq!(split.same, ["binary.binding = now", "cause lazy-binding"]);
    assert_eq!(split.how, "6 of 6 bad runs have it, 0 of 18 clean ones");
    assert!(split.p_corrected < 0.01 && split.p_corrected > split.p);
    assert_eq!(large.splits.len(), 1, "nothing drawn by lot splits: {:?}", large.splits);
    assert!(large.tried > 60, "{}", large.tried);
    // One bad run of four shows nothing.
    assert!(small.splits.is_empty());
    assert!(large.rows.iter().any(|row| row.name == "cause lazy-binding"));
}

#[test]
fn rules_decide_what_is_bad() {
    let rules = GridRules {
        lost: Some("cause:lazy-binding > 50%".parse().unwrap()),
        recovered: Some("cause:lazy-binding".parse().unwrap()),
    };
    let grids = grids(&runs(), &rules);
    assert!(!grids[0].outcomes.contains(&Outcome::Lost));
    assert_eq!(grids[0].outcomes.iter().filter(|o| **o == Outcome::Recovered).count(), 6);
    assert_eq!(grids[0].splits[0].what, "binary.binding = lazy");
}
