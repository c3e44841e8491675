//! What `prove` said of the runs that are shown: the same words and figures as on a terminal.

use std::collections::BTreeMap;

use model::{Proof, Trial, TrialSide};
use report::proof as words;
use serde::Serialize;

/// A proof, with its pairs to be drawn.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ProofPage {
    /// The verdict, in one sentence.
    pub summary: String,
    /// What was changed.
    pub change: String,
    /// What makes it weaker.
    pub warnings: Vec<String>,
    /// The figure that it is about.
    pub figure: String,
    /// (name, before, after, after over before, p, pairs): medians of recorded pairs, and of others.
    pub measured: Vec<[String; 6]>,
    /// What recording cost both sides.
    pub recording: Option<String>,
    /// Whole pairs, in the order in which they were made.
    pub pairs: Vec<ProofPair>,
    /// (cause, runs before, after, wall time before, after, p); first the one that it is about.
    pub causes: Vec<[String; 6]>,
    /// (account, mean time of a run before, after, p).
    pub accounts: Vec<[String; 4]>,
    /// (latency, p50 and p99 as after over before, n before, after).
    pub latencies: Vec<[String; 5]>,
    /// What else differed, a line each.
    pub differences: Vec<String>,
    /// What the figures are, and of which runs.
    pub legend: String,
}

/// Two executions next to each other; before comes first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ProofPair {
    /// Its number, from 1.
    pub number: usize,
    /// False of the pairs without whylag.
    pub recorded: bool,
    /// The runs.
    pub runs: [Option<i64>; 2],
    /// The figure.
    pub values: [f64; 2],
    /// The same as people read it.
    pub words: [String; 2],
}

/// Of a proof.
pub fn page(proof: &Proof) -> ProofPage {
    let measured = |name: &str, measured| {
        let [before, after, ratio, p, pairs] = words::measured_words(measured);
        [name.to_owned(), before, after, ratio, p, pairs]
    };
    let unrecorded = proof.unrecorded.iter().map(|of| measured("without whylag", of));
    let recorded = std::iter::once(measured(&proof.measured.what, &proof.measured));
    ProofPage {
        summary: proof.summary.clone(),
        change: proof.change.clone(),
        warnings: proof.warnings.clone(),
        figure: proof.measured.what.clone(),
        measured: recorded.chain(unrecorded).collect(),
        recording: words::recording(proof),
        pairs: pairs(proof),
        causes: proof.cause.iter().chain(&proof.other_causes).map(words::cause_words).collect(),
        accounts: proof.accounts.iter().map(words::account_words).collect(),
        latencies: proof.latencies.iter().map(words::latency_words).collect(),
        differences: proof.differences.iter().map(words::difference_words).collect(),
        legend: words::legend(proof),
    }
}

fn pairs(proof: &Proof) -> Vec<ProofPair> {
    let mut by_number: BTreeMap<usize, [Option<&Trial>; 2]> = BTreeMap::new();
    for trial in &proof.trials {
        let side = usize::from(trial.side == TrialSide::After);
        by_number.entry(trial.pair).or_default()[side] = Some(trial);
    }
    let value = |trial: &Trial| trial.metric.unwrap_or(trial.wall_ns as f64 / 1e9);
    let pair = |(number, sides): (usize, [Option<&Trial>; 2])| {
        let [Some(before), Some(after)] = sides else { return None };
        let values = [before, after].map(value);
        Some(ProofPair {
            number: number + 1,
            recorded: before.run.is_some() && after.run.is_some(),
            runs: [before, after].map(|trial| trial.run.map(|run| run.0)),
            values,
            words: values.map(|value| words::figure(&proof.measured, value)),
        })
    };
    by_number.into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Measured, RunId};

    fn trial(side: TrialSide, pair: usize, run: Option<i64>, seconds: u64) -> Trial {
        let wall_ns = seconds * 1_000_000_000;
        Trial { side, pair, run: run.map(RunId), wall_ns, metric: None, figures: None }
    }

    #[test]
    fn pairs_have_both_sides_and_the_one_that_was_not_recorded_says_so() {
        let trials = vec![
            trial(TrialSide::After, 0, Some(8), 2),
            trial(TrialSide::Before, 0, Some(9), 3),
            trial(TrialSide::Before, 1, None, 4),
            trial(TrialSide::After, 1, None, 1),
            trial(TrialSide::Before, 2, Some(10), 5),
        ];
        let measured = Measured { what: "wall time".to_owned(), ..Measured::default() };
        let page = page(&Proof { trials, measured, ..Proof::default() });
        let [first, second] = &page.pairs[..] else { panic!("{:?}", page.pairs) };
        assert_eq!((first.number, first.recorded, first.runs), (1, true, [Some(9), Some(8)]));
        assert_eq!(
            (first.values, first.words.clone()),
            ([3.0, 2.0], ["3.00 s", "2.00 s"].map(String::from))
        );
        assert_eq!((second.number, second.recorded, second.runs), (2, false, [None, None]));
        assert_eq!(page.measured.len(), 1, "no pair without whylag was judged");
    }
}
