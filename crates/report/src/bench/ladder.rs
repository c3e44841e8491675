//! What a ladder's rungs say together: the law of its throughput, its knee, and one sentence.

use model::units::{count, share, times};
use model::{BenchCase, BenchStep};
use serde::Serialize;
use stats::{Interval, quantile, resample, usl};

use super::reason;

/// Less than this apart, the rungs are called equal.
const ALIKE: f64 = 1.1;

/// What grows from rung to rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// The number of workers, beside the same population.
    Workers,
    /// The population, with the same number of workers.
    Population,
}

/// Rungs that differ in one thing alone.
#[derive(Clone, Debug)]
pub struct Ladder<'a> {
    pub along: Along,
    pub steps: Vec<&'a BenchStep>,
}

/// The verdict on a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What grows.
    pub along: Along,
    /// Cost of an operation on the last rung over that on the first, for one worker.
    pub ratio: Option<Interval>,
    /// The Universal Scalability Law, from three rungs of workers on.
    pub law: Option<Law>,
    /// The first rung on which a worker does less than half of what one does on the first rung.
    pub knee: Option<u32>,
    /// All that in words.
    pub sentences: Vec<String>,
}

/// The Universal Scalability Law as fitted to a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Law {
    /// Part of the work that is serialised.
    pub contention: Interval,
    /// Cost that each pair of workers adds.
    pub crosstalk: Interval,
    /// Workers beyond which throughput falls, if crosstalk is certain.
    pub peak: Option<f64>,
    /// Rounds on each rung.
    pub rounds: [usize; 2],
}

/// The ladders of a case: of workers at each size of the population, then of the population for
/// each number of workers. What has one rung only is no ladder.
pub fn ladders(case: &BenchCase) -> Vec<Ladder<'_>> {
    let populations = distinct(case.steps.iter().map(|step| step.population));
    let workers = distinct(case.steps.iter().map(|step| u64::from(step.workers)));
    let along = |along, keep: &dyn Fn(&BenchStep) -> bool| Ladder {
        along,
        steps: case.steps.iter().filter(|step| keep(step)).collect(),
    };
    let of_workers =
        populations.iter().map(|size| along(Along::Workers, &|step| step.population == *size));
    let of_population =
        workers.iter().map(|n| along(Along::Population, &|step| u64::from(step.workers) == *n));
    of_workers.chain(of_population).filter(|ladder| ladder.steps.len() > 1).collect()
}

/// In order of appearance.
pub fn distinct(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Time of an operation of one worker in each round, waiting included, ns.
pub(crate) fn each_ns(step: &BenchStep) -> Vec<f64> {
    let workers = f64::from(step.workers);
    step.rounds.iter().filter(|round| round.rate > 0.0).map(|r| workers * 1e9 / r.rate).collect()
}

/// Median of an operation in each round without what the clock costs, ns.
fn net_ns(step: &BenchStep) -> Vec<f64> {
    let medians: Vec<f64> = step.rounds.iter().map(|round| round.median_ns).collect();
    let clock = quantile::median(&medians).unwrap_or(0.0) - step.net_ns;
    medians.into_iter().map(|ns| (ns - clock).max(0.0)).collect()
}

impl Ladder<'_> {
    /// Judges; `cpus` is how many the host has.
    pub fn verdict(&self, case: &BenchCase, cpus: Option<u32>) -> Option<Verdict> {
        let (first, last) = (*self.steps.first()?, *self.steps.last()?);
        let cost = match self.along {
            Along::Workers => each_ns,
            Along::Population => net_ns,
        };
        let ratio = resample::ratio_of_medians(&cost(first), &cost(last), 0.95);
        let law = (self.along == Along::Workers).then(|| self.law()).flatten();
        let knee = (self.along == Along::Workers).then(|| self.knee()).flatten();
        let mut sentences = match self.along {
            Along::Workers => vec![workers_sentence(first, last, ratio, cpus)],
            Along::Population => vec![population_sentence(case, first, last, ratio)],
        };
        if let Some(law) = law {
            sentences.push(self.law_sentence(&law, cpus));
        }
        if self.along == Along::Workers && self.steps.len() > 2 {
            sentences.push(self.knee_sentence(knee));
        }
        Some(Verdict { along: self.along, ratio, law, knee, sentences })
    }

    fn law(&self) -> Option<Law> {
        let rates = |step: &BenchStep| step.rounds.iter().map(|round| round.rate).collect();
        let points: Vec<(f64, Vec<f64>)> =
            self.steps.iter().map(|step| (f64::from(step.workers), rates(step))).collect();
        let medians: Vec<(f64, f64)> =
            points.iter().filter_map(|(n, rates)| Some((*n, quantile::median(rates)?))).collect();
        let peak = usl::fit(&medians)?.peak();
        let (contention, crosstalk) = usl::intervals(&points)?;
        let rounds = self.steps.iter().map(|step| step.rounds.len());
        Some(Law {
            contention,
            crosstalk,
            peak: peak.filter(|_| crosstalk.low > 0.0),
            rounds: [rounds.clone().min()?, rounds.max()?],
        })
    }

    fn knee(&self) -> Option<u32> {
        let each = |step: &BenchStep| step.rate() / f64::from(step.workers.max(1));
        let alone = each(self.steps.first()?);
        self.steps.iter().find(|step| each(step) < alone / 2.0).map(|step| step.workers)
    }

    fn law_sentence(&self, law: &Law, cpus: Option<u32>) -> String {
        let interval = |of: Interval| {
            format!("{} (95 %: {} to {})", share(of.estimate), share(of.low), share(of.high))
        };
        let [least, most] = law.rounds;
        let rounds = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        let mut text = format!(
            "USL fit, n = {rounds} rounds a rung: contention {}, crosstalk {}",
            interval(law.contention),
            interval(law.crosstalk),
        );
        let most = self.steps.iter().map(|step| step.workers).max().unwrap_or(0);
        match (cpus, law.peak) {
            // More workers than CPUs bend the curve as well, and at one point.
            (Some(cpus), _) if most > cpus => {
                text += &format!("; with {cpus} CPUs, want of a CPU is in both");
            }
            (_, Some(peak)) => text += &format!("; throughput is highest with about {peak:.1}"),
            (_, None) => {}
        }
        text
    }

    fn knee_sentence(&self, knee: Option<u32>) -> String {
        let in_words = |workers: u32| {
            let kind = self.steps.first().map(|step| step.kind);
            kind.map_or(workers.to_string(), |kind| kind.count_in_words(workers))
        };
        let of = |step: Option<&&BenchStep>| step.map_or(0, |step| step.workers);
        let (first, last) = (of(self.steps.first()), of(self.steps.last()));
        match knee {
            Some(knee) => {
                let knee = in_words(knee);
                format!("knee: {knee} (each does less than half of what {first} alone does)")
            }
            None => format!(
                "no knee up to {} (each does at least half of what {first} alone does)",
                in_words(last)
            ),
        }
    }
}

fn is_alike(ratio: Interval) -> bool {
    (1.0 / ALIKE..ALIKE).contains(&ratio.estimate)
}

fn workers_sentence(
    first: &BenchStep,
    last: &BenchStep,
    ratio: Option<Interval>,
    cpus: Option<u32>,
) -> String {
    let who = last.kind.count_in_words(last.workers);
    let Some(ratio) = ratio else { return format!("{who}: too few rounds to say more") };
    let throughput = last.rate() / first.rate().max(f64::MIN_POSITIVE);
    let gain = format!("{} the throughput of {}", times(throughput), first.workers);
    let bounds = format!("{} to {}", times(ratio.low), times(ratio.high));
    if ratio.contains(1.0) && !is_alike(ratio) {
        let estimate = times(ratio.estimate);
        format!("{who}: too noisy to say how each fares ({estimate}, {bounds}), {gain}")
    } else if ratio.estimate >= ALIKE {
        let mut text = format!("{who}: {} slower each ({bounds}), {gain}", times(ratio.estimate));
        if let Some(reason) = reason::slower(first, last, cpus) {
            text += &format!("; {reason}");
        }
        text
    } else if is_alike(ratio) {
        format!("{who}: no slower each ({}, {bounds}), {gain}", times(ratio.estimate))
    } else {
        format!(
            "{who}: {} faster each than {} ({gain})",
            times(1.0 / ratio.estimate),
            first.workers
        )
    }
}

fn population_sentence(
    case: &BenchCase,
    first: &BenchStep,
    last: &BenchStep,
    ratio: Option<Interval>,
) -> String {
    let of = case.population_of.as_deref().unwrap_or("objects");
    let who = if first.workers == 1 && case.steps.iter().all(|step| step.workers == 1) {
        String::new()
    } else {
        format!("{}, ", first.kind.count_in_words(first.workers))
    };
    let place = format!("{who}beside {} {of}", count(last.population));
    let Some(ratio) = ratio else { return format!("{place}: too few rounds to say more") };
    let bounds = format!("{} to {}", times(ratio.low), times(ratio.high));
    let than = count(first.population);
    if ratio.contains(1.0) && !is_alike(ratio) {
        let estimate = times(ratio.estimate);
        format!("{place}: too noisy to compare with beside {than} ({estimate}, {bounds})")
    } else if !is_alike(ratio) {
        let mut text =
            format!("{place}: {} the cost beside {than} ({bounds})", times(ratio.estimate));
        if let Some(growth) = reason::cpu_growth(first, last) {
            text += &format!("; {growth}");
        }
        text
    } else {
        format!("{place}: as cheap as beside {than} ({}, {bounds})", times(ratio.estimate))
    }
}
