//! A case from its first rung to its last.
//!
//! Populations grow, never shrink; at each size the rungs of workers take turns, round by round,
//! so that what slows the machine slows all of them.
//!
//! Two things are decided here, because they are part of measuring: when a rung has rounds enough,
//! and that a disturbed round needs another in its place. What the rungs amount to is decided by
//! explain, from the stored rounds; only whether a kernel behaves as in a case's story stands in the
//! case itself.

use std::time::{Duration, Instant};

use model::{BenchCase, BenchStep, Histogram, WorkerKind};
use stats::{ab, quantile, resample};

use crate::area::{OUTLIERS, PRECISION};
use crate::cases::{Benchmark, Prepared, Request};
use crate::clock::Clock;
use crate::round::{self, Plan, Round, middle};
use crate::tidy::Traces;
use crate::{Error, ceiling, helpers, spin, stop};

/// What to measure, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cases.
    pub cases: Vec<&'static Benchmark>,
    /// Only the first two sizes and numbers of workers of each case.
    pub tour: bool,
    /// Workers; without them those of the case.
    pub workers: Option<(WorkerKind, Vec<u32>)>,
    /// Sizes of the population; without them those of the case.
    pub population: Option<Vec<u64>>,
    /// For a case, all its rungs together.
    pub time: Duration,
    /// Bind worker i to the i-th CPU.
    pub pin: bool,
}

/// Rounds of a step: the samples of its statistics.
pub const ROUNDS: usize = 10;
/// Rounds of a step at most, with those in place of disturbed ones.
pub const MOST_ROUNDS: usize = 20;
/// Rounds before which a step does not end early, and undisturbed ones that are wanted: two samples
/// of fewer can hardly differ.
const ENOUGH_ROUNDS: usize = 6;
/// Half width of the interval of the median, as a part of it, that is tight enough.
const TIGHT: f64 = 0.002;
/// Rungs of a ladder in the tour.
const TOUR_RUNGS: usize = 2;
/// Operations that take longer than a round make rounds longer than planned: so many times the
/// planned time is the end. The same for rounds in place of disturbed ones.
const OVERTIME: u32 = 2;
/// However many rungs there are, a round takes at least this long.
const SHORTEST_ROUND: Duration = Duration::from_millis(4);

/// What stays the same for all cases of a run.
pub struct Bench<'a> {
    /// The clock.
    pub clock: Clock,
    /// Its smallest step, ns.
    pub clock_step_ns: u64,
    /// For files and keys.
    pub traces: &'a Traces,
    /// Median of the empty operation, ns; infinite until it is known.
    pub empty_ns: f64,
    /// Rounds of a step at most.
    pub most_rounds: usize,
}

impl Bench<'_> {
    /// Measures a case; `tell` hears which part of it is done, 0 to 1.
    ///
    /// # Errors
    /// Only [`Error::Stopped`]: whatever else ends the ladder is shown in its `stopped`.
    pub fn measure(
        &self,
        case: &'static Benchmark,
        settings: &Settings,
        tell: &mut dyn FnMut(f64),
    ) -> Result<BenchCase, Error> {
        let of = case.ladder.population.as_ref();
        let (kind, workers) = match &settings.workers {
            Some((kind, workers)) => (*kind, workers.clone()),
            None => (case.ladder.kind, case.ladder.workers.to_vec()),
        };
        let sizes = match (of, &settings.population) {
            (None, _) => vec![0],
            (Some(of), None) => of.sizes.to_vec(),
            (Some(_), Some(sizes)) => sizes.clone(),
        };
        let mut ladder = BenchCase {
            id: case.id.to_owned(),
            measures: case.measures.to_owned(),
            population_of: of.map(|of| of.of.to_owned()),
            steps: Vec::new(),
            stopped: None,
            shape: None,
        };
        let most = if settings.tour { TOUR_RUNGS } else { usize::MAX };
        let sizes = &sizes[..sizes.len().min(most)];
        let workers = &workers[..workers.len().min(most)];
        let rung = settings.time / (sizes.len() * workers.len()).max(1) as u32;
        let plan = Plan {
            workers: 0,
            kind,
            time: (rung / ROUNDS as u32).max(SHORTEST_ROUND),
            pin: settings.pin,
            clock: self.clock,
            clock_step_ns: self.clock_step_ns,
        };
        for (done, size) in sizes.iter().enumerate() {
            let part = |within: f64| (done as f64 + within) / sizes.len() as f64;
            match self.population(case, *size, workers, &plan, &mut |within| tell(part(within))) {
                Ok(steps) => ladder.steps.extend(steps),
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(error) => {
                    ladder.stopped = Some(error.to_string());
                    break;
                }
            }
        }
        ladder.shape =
            case.ladder.shape.filter(|_| ladder.steps.len() > 1).map(|f| f(&ladder.steps));
        Ok(ladder)
    }

    /// All rungs of workers at one size of the population.
    fn population(
        &self,
        case: &'static Benchmark,
        size: u64,
        workers: &[u32],
        plan: &Plan,
        tell: &mut dyn FnMut(f64),
    ) -> Result<Vec<BenchStep>, Error> {
        if let Some(of) = &case.ladder.population {
            ceiling::check(of.uses, size, of.of)?;
        }
        let most = workers.iter().copied().max().unwrap_or(1);
        let request =
            Request { workers: most, kind: plan.kind, population: size, traces: self.traces };
        let prepared = (case.prepare)(&request)?;
        let before = spin::Disturbance::now();
        let (began, budget) = (Instant::now(), plan.time * (ROUNDS * workers.len()) as u32);
        let mut rounds: Vec<Vec<Round>> = workers.iter().map(|_| Vec::new()).collect();
        for done in 0..self.most_rounds {
            let has_enough = rounds.iter().all(|rounds| undisturbed(rounds) >= ENOUGH_ROUNDS);
            let end = if has_enough { budget } else { budget * OVERTIME };
            let is_done =
                done >= ROUNDS || done >= ENOUGH_ROUNDS && rounds.iter().all(|r| is_tight(r));
            if began.elapsed() > end || is_done && has_enough {
                break;
            }
            self.turn(case, prepared.as_ref(), workers, plan, &mut rounds)?;
            tell(((done + 1) as f64 / ROUNDS as f64).min(1.0));
        }
        let disturbed = before.since();
        let steps = workers.iter().zip(rounds).map(|(workers, rounds)| {
            let mut step = self.step(*workers, plan.kind, size, rounds);
            step.warnings.extend(disturbed.iter().cloned());
            step
        });
        Ok(steps.collect())
    }

    /// One round of each rung.
    fn turn(
        &self,
        case: &'static Benchmark,
        prepared: &dyn Prepared,
        workers: &[u32],
        plan: &Plan,
        rounds: &mut [Vec<Round>],
    ) -> Result<(), Error> {
        for (workers, rounds) in workers.iter().zip(rounds) {
            let round = round::run(case, prepared, &Plan { workers: *workers, ..*plan });
            // Workers that a signal ended have not failed.
            if stop::requested() {
                return Err(Error::Stopped);
            }
            if helpers::one_has_died() {
                let why = "a helper process died, and with it a part of what the case needs";
                return Err(Error::Refused(why.to_owned()));
            }
            rounds.push(round?);
        }
        Ok(())
    }

    fn step(&self, workers: u32, kind: WorkerKind, size: u64, rounds: Vec<Round>) -> BenchStep {
        let mut single = Histogram::new(PRECISION);
        let mut double = Histogram::new(PRECISION);
        let mut outliers = Vec::new();
        for round in &rounds {
            single.merge(&round.single);
            double.merge(&round.double);
            outliers.extend(round.outliers.iter().cloned());
        }
        outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.ns));
        outliers.truncate(OUTLIERS);
        // Of long operations whose cost varies the two medians may be far apart; a clock never is.
        let clock_ns = match double.count() {
            0 => self.empty_ns,
            _ => (2.0 * middle(&single, self.clock_step_ns) - middle(&double, self.clock_step_ns))
                .clamp(0.0, 2.0 * self.empty_ns),
        };
        let sum = |of: fn(&Round) -> u64| rounds.iter().map(of).sum();
        BenchStep {
            workers,
            kind,
            population: size,
            operations: sum(|round| round.operations),
            wall_ns: sum(|round| round.wall_ns),
            user_ns: sum(|round| round.user_ns),
            system_ns: sum(|round| round.system_ns),
            queued_ns: rounds.iter().map(|round| round.queued_ns).sum(),
            net_ns: (middle(&single, self.clock_step_ns) - clock_ns).max(0.0),
            single,
            outliers,
            ended_early: rounds.len() < ROUNDS,
            warnings: spin::drift(rounds.iter().map(|round| round.summary.reference_ns))
                .into_iter()
                .collect(),
            rounds: rounds.into_iter().map(|round| round.summary).collect(),
            accounts: None,
        }
    }
}

/// Rounds in which nobody slowed the machine.
fn undisturbed(rounds: &[Round]) -> usize {
    let references = || rounds.iter().map(|round| round.summary.reference_ns);
    let limit = references().fold(f64::MAX, f64::min) * (1.0 + ab::DISTURBED);
    references().filter(|ns| *ns <= limit).count()
}

/// The medians of the rounds agree.
fn is_tight(rounds: &[Round]) -> bool {
    let medians: Vec<f64> = rounds.iter().map(|round| round.summary.median_ns).collect();
    let interval = resample::interval(&medians, 0.95, quantile::median);
    interval.is_some_and(|interval| interval.relative_half_width() <= TIGHT)
}
