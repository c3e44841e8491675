//! What the bad runs have and the clean ones do not.

use std::collections::{BTreeMap, BTreeSet};

use model::units::{duration, share};
use model::{LatencyFigure, Outcome, RunFigures, Split};
use stats::proportion::{Count, fisher};
use stats::{multiple, quantile, rank};

use super::{account_share, varying_facts};

/// Corrected p up to this is a split.
const ALPHA: f64 = 0.05;
/// A value of a fact that fewer runs have, or lack, splits nothing.
const LEAST_WITH: usize = 2;

/// What is tried.
enum Feature {
    /// There or not, in each run.
    There(Vec<bool>),
    /// A size in each run, and how it is shown.
    Size(Vec<f64>, fn(f64) -> String),
}

/// Splits whose corrected p counts, the surest first, and how many were tried. Bad are the lost
/// runs; where none is lost, the recovered ones.
pub fn find(runs: &[&RunFigures], outcomes: &[Outcome]) -> (Vec<Split>, usize) {
    let bad = match outcomes.contains(&Outcome::Lost) {
        true => Outcome::Lost,
        false => Outcome::Recovered,
    };
    let places = |wanted: Outcome| -> Vec<usize> {
        (0..runs.len()).filter(|place| outcomes[*place] == wanted).collect()
    };
    let (bad, clean) = (places(bad), places(Outcome::Clean));
    if bad.is_empty() || clean.is_empty() {
        return (Vec::new(), 0);
    }
    let compared: Vec<usize> = bad.iter().chain(&clean).copied().collect();
    let mut tested: Vec<Split> = Vec::new();
    let mut seen = BTreeMap::<Vec<bool>, usize>::new();
    for (what, feature) in features(runs) {
        match feature {
            Feature::There(there) => {
                let pattern: Vec<bool> = compared.iter().map(|place| there[*place]).collect();
                let with = pattern.iter().filter(|there| **there).count();
                if with == 0 || with == pattern.len() {
                    continue;
                }
                // What is there in the same runs, or in exactly the others, is one test.
                let turned: Vec<bool> = pattern.iter().map(|there| pattern[0] == *there).collect();
                if let Some(place) = seen.get(&turned) {
                    tested[*place].same.push(what);
                    continue;
                }
                seen.insert(turned, tested.len());
                tested.push(there_or_not(what, &pattern, bad.len()));
            }
            Feature::Size(sizes, text) => {
                let of = |places: &[usize]| -> Vec<f64> {
                    places.iter().map(|place| sizes[*place]).collect()
                };
                tested.extend(size(what, &of(&clean), &of(&bad), text));
            }
        }
    }
    let ps: Vec<f64> = tested.iter().map(|split| split.p).collect();
    for (split, p) in tested.iter_mut().zip(multiple::holm(&ps)) {
        split.p_corrected = p;
    }
    let tried = tested.len();
    tested.retain(|split| split.p_corrected <= ALPHA);
    tested.sort_by(|a, b| a.p.total_cmp(&b.p));
    (tested, tried)
}

/// Facts, causes and losses first: what a size says is mostly what the bad runs suffer from.
fn features(runs: &[&RunFigures]) -> Vec<(String, Feature)> {
    let there = |has: &dyn Fn(&RunFigures) -> bool| {
        Feature::There(runs.iter().map(|run| has(run)).collect())
    };
    let mut all = Vec::new();
    for name in varying_facts(runs) {
        let values: BTreeSet<Option<&String>> =
            runs.iter().map(|run| run.facts.get(name)).collect();
        for value in values {
            let with = runs.iter().filter(|run| run.facts.get(name) == value).count();
            if with >= LEAST_WITH && runs.len() - with >= LEAST_WITH {
                let text = value.map_or_else(|| "(not set)".to_owned(), String::clone);
                let what = format!("{name} = {text}");
                all.push((what, there(&|run| run.facts.get(name) == value)));
            }
        }
    }
    let causes: BTreeSet<&String> =
        runs.iter().flat_map(|run| &run.causes).map(|figure| &figure.cause).collect();
    for id in causes {
        all.push((format!("cause {id}"), there(&|run| run.cause(id).is_some())));
    }
    let losses: BTreeSet<&String> = runs.iter().flat_map(|run| run.losses.keys()).collect();
    for kind in losses {
        let has = |run: &RunFigures| run.losses.get(kind).is_some_and(|count| *count > 0);
        all.push((format!("loss {kind}"), there(&has)));
    }
    let accounts: BTreeSet<_> = runs.iter().flat_map(|run| run.accounts.keys()).copied().collect();
    for account in accounts {
        let shares = runs.iter().map(|run| account_share(run, account)).collect();
        all.push((format!("account {account}"), Feature::Size(shares, share)));
    }
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.latencies.keys()).collect();
    for name in names {
        let p99 = |run: &&RunFigures| {
            let quantiles = &run.latencies.get(name)?.quantiles_ns;
            Some(*quantiles.get(LatencyFigure::P99)? as f64)
        };
        // Of all runs or of none: a run without it is no run with a size of 0.
        if let Some(sizes) = runs.iter().map(p99).collect::<Option<Vec<f64>>>() {
            let text = |ns: f64| duration(ns as u64);
            all.push((format!("p99 of {name}"), Feature::Size(sizes, text)));
        }
    }
    all
}

/// The first `bad` of the pattern are the bad runs.
fn there_or_not(what: String, pattern: &[bool], bad: usize) -> Split {
    let count = |part: &[bool]| Count { with: part.iter().filter(|t| **t).count(), of: part.len() };
    let (of_bad, of_clean) = (count(&pattern[..bad]), count(&pattern[bad..]));
    let how = format!(
        "{} of {} bad runs have it, {} of {} clean ones",
        of_bad.with, of_bad.of, of_clean.with, of_clean.of
    );
    let p = fisher(of_bad, of_clean);
    Split { what, same: Vec::new(), how, p, p_corrected: 1.0 }
}

fn size(what: String, clean: &[f64], bad: &[f64], text: fn(f64) -> String) -> Option<Split> {
    let p = rank::mann_whitney(clean, bad)?.p;
    let (of_bad, of_clean) = (quantile::median(bad)?, quantile::median(clean)?);
    let how = format!("median {} in bad runs, {} in clean ones", text(of_bad), text(of_clean));
    Some(Split { what, same: Vec::new(), how, p, p_corrected: 1.0 })
}
