//! What else differs between the sides: facts, other programs, the hypervisor.

use std::collections::BTreeSet;

use model::units::duration;
use model::{Difference, RunFigures};
use stats::paired::{self, ALPHA};
use stats::quantile;

use super::ProofQuestion;

/// (before, after) of a pair.
type Figures<'a> = (&'a RunFigures, &'a RunFigures);

/// Time of others below this part of a run's length does not matter.
const LEAST_PART: f64 = 0.01;

/// What differs, and was not meant to.
pub fn all(question: &ProofQuestion, pairs: &[Figures<'_>]) -> Vec<Difference> {
    let mut found = facts(question, pairs);
    found.extend(of_time("other programs' CPU time", pairs, |figures| figures.others_cpu_ns));
    found.extend(of_time("time taken by the hypervisor", pairs, |figures| figures.stolen_ns));
    found
}

/// Facts that are one value in all runs of a side, and another one on the other side.
fn facts(question: &ProofQuestion, pairs: &[Figures<'_>]) -> Vec<Difference> {
    let Some((first, _)) = pairs.first() else { return Vec::new() };
    let after = pairs.iter().flat_map(|(_, after)| after.facts.keys());
    let names: BTreeSet<&String> = first.facts.keys().chain(after).collect();
    let only = |name: &String, side: &dyn Fn(&Figures<'_>) -> Option<String>| {
        let values: BTreeSet<Option<String>> = pairs.iter().map(side).collect();
        debug_assert!(!values.is_empty(), "{name}");
        let one = values.len() == 1;
        values.into_iter().next().filter(|_| one)
    };
    let differs =
        names.into_iter().filter(|name| !question.meant.contains(name)).filter_map(|name| {
            let before = only(name, &|pair| pair.0.facts.get(name).cloned())?;
            let after = only(name, &|pair| pair.1.facts.get(name).cloned())?;
            let text = |value: Option<String>| value.unwrap_or_else(|| "(not set)".to_owned());
            (before != after).then(|| Difference {
                what: name.clone(),
                before: text(before),
                after: text(after),
            })
        });
    differs.collect()
}

/// Time of others, as a part of the length of the run, if pairs show that it differs.
fn of_time(what: &str, pairs: &[Figures<'_>], time: fn(&RunFigures) -> u64) -> Option<Difference> {
    let part = |figures: &RunFigures| time(figures) as f64 / figures.length_ns.max(1) as f64;
    let moved: Vec<f64> = pairs.iter().map(|pair| part(pair.1) - part(pair.0)).collect();
    let median = |side: &dyn Fn(&Figures<'_>) -> f64| {
        quantile::median(&pairs.iter().map(side).collect::<Vec<_>>())
    };
    let p = paired::difference_p(&moved)?;
    let (before, after) = (median(&|pair| part(pair.0))?, median(&|pair| part(pair.1))?);
    let in_a_second = |part: f64| format!("{} in each second", duration((part * 1e9) as u64));
    (p <= ALPHA && (after - before).abs() >= LEAST_PART).then(|| Difference {
        what: what.to_owned(),
        before: in_a_second(before),
        after: in_a_second(after),
    })
}
