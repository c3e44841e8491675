//! What a ladder's rungs say together: the law of its throughput, its knee, and one sentence.
//!
//! The benchmark measures the rungs, and decides alone when a rung has rounds enough; what they
//! amount to is decided here, of a stored run as well.

mod slower;
#[cfg(test)]
mod tests;

use model::{Along, BenchCase, BenchStep, LadderVerdict, Run, ScalabilityLaw};
use stats::{Interval, quantile, resample, usl};

use crate::text::{count, share, times};

/// Less than this apart, the rungs are called equal.
const ALIKE: f64 = 1.1;

/// Rungs that differ in one thing alone.
#[derive(Clone, Debug)]
struct Ladder<'a> {
    along: Along,
    steps: Vec<&'a BenchStep>,
}

/// For each case of a benchmark run, in its order: what its ladders say.
pub fn judge_ladders(run: &Run) -> Vec<Vec<LadderVerdict>> {
    let cpus = run.fact_number("cpu.count").and_then(|count| count.try_into().ok());
    let of_case = |case| ladders(case).iter().filter_map(|l| l.verdict(case, cpus)).collect();
    run.bench.iter().flat_map(|bench| &bench.cases).map(of_case).collect()
}

/// The ladders of a case: of workers at each size of the population, then of the population for
/// each number of workers. What has one rung only is no ladder.
fn ladders(case: &BenchCase) -> Vec<Ladder<'_>> {
    let (populations, workers) = (case.populations(), case.worker_counts());
    let along = |along, keep: &dyn Fn(&BenchStep) -> bool| Ladder {
        along,
        steps: case.steps.iter().filter(|step| keep(step)).collect(),
    };
    let of_workers =
        populations.iter().map(|size| along(Along::Workers, &|step| step.population == *size));
    let of_population =
        workers.iter().map(|n| along(Along::Population, &|step| step.workers == *n));
    of_workers.chain(of_population).filter(|ladder| ladder.steps.len() > 1).collect()
}

/// Median of an operation in each round without what the clock costs, ns.
fn net_ns(step: &BenchStep) -> Vec<f64> {
    let medians: Vec<f64> = step.rounds.iter().map(|round| round.median_ns).collect();
    let clock = quantile::median(&medians).unwrap_or(0.0) - step.net_ns;
    medians.into_iter().map(|ns| (ns - clock).max(0.0)).collect()
}

impl Ladder<'_> {
    /// Judges; `cpus` is how many the host has.
    fn verdict(&self, case: &BenchCase, cpus: Option<u32>) -> Option<LadderVerdict> {
        let (first, last) = (*self.steps.first()?, *self.steps.last()?);
        let cost = match self.along {
            Along::Workers => BenchStep::each_ns,
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
        Some(LadderVerdict { along: self.along, ratio, law, knee, sentences })
    }

    fn law(&self) -> Option<ScalabilityLaw> {
        let rates = |step: &BenchStep| step.rounds.iter().map(|round| round.rate).collect();
        let points: Vec<(f64, Vec<f64>)> =
            self.steps.iter().map(|step| (f64::from(step.workers), rates(step))).collect();
        let medians: Vec<(f64, f64)> =
            points.iter().filter_map(|(n, rates)| Some((*n, quantile::median(rates)?))).collect();
        let peak = usl::fit(&medians)?.peak();
        let (contention, crosstalk) = usl::intervals(&points)?;
        let rounds = self.steps.iter().map(|step| step.rounds.len());
        Some(ScalabilityLaw {
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

    fn law_sentence(&self, law: &ScalabilityLaw, cpus: Option<u32>) -> String {
        let interval = |of: Interval| {
            format!("{} (95 %: {} to {})", share(of.estimate), share(of.low), share(of.high))
        };
        let [least, most] = law.rounds;
        let rounds = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        let mut text = format!(
            "USL fit, n = {rounds} rounds per step: contention {}, coherency {}",
            interval(law.contention),
            interval(law.crosstalk),
        );
        let most = self.steps.iter().map(|step| step.workers).max().unwrap_or(0);
        match (cpus, law.peak) {
            // More workers than CPUs bend the curve as well, and at one point.
            (Some(cpus), _) if most > cpus => {
                text += &format!("; with {cpus} CPUs, both include run-queue delay");
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
        if let Some(reason) = slower::reason(first, last, cpus) {
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
    let place = format!("{who}with {} {of}", count(last.population));
    let Some(ratio) = ratio else { return format!("{place}: too few rounds to say more") };
    let bounds = format!("{} to {}", times(ratio.low), times(ratio.high));
    let than = count(first.population);
    if ratio.contains(1.0) && !is_alike(ratio) {
        let estimate = times(ratio.estimate);
        format!("{place}: too noisy to compare with {than} ({estimate}, {bounds})")
    } else if !is_alike(ratio) {
        let mut text =
            format!("{place}: {} the cost with {than} ({bounds})", times(ratio.estimate));
        if let Some(growth) = slower::cpu_growth(first, last) {
            text += &format!("; {growth}");
        }
        text
    } else {
        format!("{place}: as cheap as with {than} ({}, {bounds})", times(ratio.estimate))
    }
}
