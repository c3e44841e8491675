//! Is one run of a benchmark slower than another of the same?
//!
//! Two runs of the same thing differ: where their pages lie, what else the host does, how warm it
//! is. Rounds within a run share all that, so a test over rounds alone calls most pairs of equal
//! runs different (with 2 % of noise between runs and six steps, more than half of the pairs in the
//! tests below), and more rounds make it worse. Two runs cannot say how large that noise is. So the
//! rule here asks for four things at once, and calls everything else undecided or equal:
//!
//! 1. The exact Mann-Whitney test over rounds, adjusted for the number of tests: the rounds do
//!    differ.
//! 2. The whole interval of the ratio lies beyond the practical threshold, and this interval has
//!    [`RUN_NOISE`] added: the usual distance of equal runs does not explain the difference.
//! 3. The same holds with the ratio divided by that of the reference computations, which are timed
//!    around each round: a slower machine does not explain it.
//! 4. The fastest rounds of both differ by more than the threshold as well. What disturbs a round
//!    makes it slower, never faster (Chen and Revels 2016, Robust benchmarking in noisy
//!    environments), and may last for most of a run: somebody who traces all system calls, say.
//!
//! Rounds around which the reference computation took more than [`DISTURBED`] longer than the
//! fastest of both runs are left out, if enough remain on both sides: a neighbour on the sibling
//! hyper-thread slows rounds by a fifth to three quarters. That is decided from the machine alone,
//! so it favours neither side.
//!
//! With the threshold at 5 % a difference is called from about 11 % on. By simulation (see the
//! tests) at 2 % between runs and 2 % between rounds: no more than 1 of 100 equal pairs is called
//! different, and at least 99 of 100 slowdowns of 20 % are found; at 2.5 % between runs it is 2 and
//! 95 of 100.

use serde::{Deserialize, Serialize};

use crate::rank::{self, MannWhitney};
use crate::{Interval, quantile, resample};

/// Standard deviation between runs of the same thing that is assumed, as a part.
pub const RUN_NOISE: f64 = 0.02;
/// Fewer rounds in a run than this show nothing: exact p of 4 + 4 is at least 0.029, which no
/// adjustment for several tests survives.
pub const ENOUGH: usize = 5;
/// A reference computation slower by this part than the fastest means a disturbed machine.
pub const DISTURBED: f64 = 0.1;
/// Adjusted p up to this counts.
pub const ALPHA: f64 = 0.05;
/// The quantile of the normal distribution that bounds 95 % on both sides.
const TWO_SIDED_95: f64 = 1.96;

/// One side: a value for each round.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Cost of an operation, any unit.
    pub cost: Vec<f64>,
    /// Time of the same computation around each round; empty if it is not known.
    pub reference: Vec<f64>,
}

/// The second side against the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median cost over median cost, with its 95 % interval: rounds resampled, noise between runs
    /// added, and wide enough to hold what it is with the machine's own speed divided out.
    pub ratio: Interval,
    /// How much longer the reference computation took; 1.0 if that is not known.
    pub machine: f64,
    /// The test over rounds.
    pub test: MannWhitney,
    /// Cost in the fastest round over that in the fastest of the first side.
    pub fastest: f64,
    /// Median cost on the first side and on the second.
    pub medians: [f64; 2],
    /// Rounds that were compared.
    pub n: [usize; 2],
}

/// The verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The second costs more, by more than the threshold.
    Slower,
    /// The second costs less, by more than the threshold.
    Faster,
    /// The estimate is within the threshold.
    NoDifference,
    /// Beyond the threshold, but noise explains it, or there are too few rounds.
    Insufficient,
}

impl Rounds {
    /// Those around which the reference took at most `ns`.
    fn undisturbed(&self, ns: f64) -> Rounds {
        let both = self.cost.iter().zip(&self.reference).filter(|(_, reference)| **reference <= ns);
        let (cost, reference) = both.unzip();
        Rounds { cost, reference }
    }
}

/// Compares two sides; `None` with fewer than 3 rounds, or a median of zero.
pub fn compare(a: &Rounds, b: &Rounds) -> Option<Difference> {
    let fastest = a.reference.iter().chain(&b.reference).copied().fold(f64::MAX, f64::min);
    let limit = fastest * (1.0 + DISTURBED);
    let (quiet_a, quiet_b) = (a.undisturbed(limit), b.undisturbed(limit));
    if quiet_a.cost.len().min(quiet_b.cost.len()) >= ENOUGH {
        difference(&quiet_a, &quiet_b)
    } else {
        difference(a, b)
    }
}

fn difference(a: &Rounds, b: &Rounds) -> Option<Difference> {
    let rounds = resample::ratio_of_medians(&a.cost, &b.cost, 0.95)?;
    if rounds.low <= 0.0 {
        return None;
    }
    let machine = match (quantile::median(&a.reference), quantile::median(&b.reference)) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => b / a,
        _ => 1.0,
    };
    // Both are errors of the logarithm and independent: they add as squares.
    let between_runs = TWO_SIDED_95 * RUN_NOISE * std::f64::consts::SQRT_2;
    let widened = |bound: f64| (bound / rounds.estimate).ln().hypot(between_runs).exp();
    let (low, high) =
        (rounds.estimate / widened(rounds.low), rounds.estimate * widened(rounds.high));
    let ratio = Interval { low: low.min(low / machine), high: high.max(high / machine), ..rounds };
    let test = rank::mann_whitney(&a.cost, &b.cost)?;
    let medians = [quantile::median(&a.cost)?, quantile::median(&b.cost)?];
    let fastest = |side: &Rounds| side.cost.iter().copied().fold(f64::MAX, f64::min);
    let fastest = fastest(b) / fastest(a);
    Some(Difference { ratio, machine, test, fastest, medians, n: [a.cost.len(), b.cost.len()] })
}

impl Difference {
    /// The verdict, with the test's p adjusted for all tests made; `threshold` 0.05 is 5 %.
    pub fn change(&self, adjusted_p: f64, threshold: f64) -> Change {
        let (slower, faster) = (1.0 + threshold, 1.0 / (1.0 + threshold));
        if self.n.iter().any(|n| *n < ENOUGH) {
            Change::Insufficient
        } else if (faster..=slower).contains(&self.ratio.estimate) {
            Change::NoDifference
        } else if adjusted_p > ALPHA {
            Change::Insufficient
        } else if self.ratio.low.min(self.fastest) > slower {
            Change::Slower
        } else if self.ratio.high.max(self.fastest) < faster {
            Change::Faster
        } else {
            Change::Insufficient
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiple;

    /// Bootstrapping takes its time: with 400 pairs all of this holds as well.
    const PAIRS: usize = 100;
    /// A benchmark of two ladders.
    const STEPS: usize = 6;

    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    /// A run of all steps: each has a shift of its own, shared by its rounds.
    fn run(
        rng: &mut fastrand::Rng,
        steps: usize,
        between_runs: f64,
        slower: f64,
        machine: f64,
    ) -> Vec<Rounds> {
        let step = |_| {
            let level = 100.0 * slower * machine * (between_runs * normal(rng)).exp();
            let mut around = |level: f64, noise: f64| {
                (0..10).map(|_| level * (noise * normal(rng)).exp()).collect()
            };
            Rounds { cost: around(level, 0.02), reference: around(500.0 * machine, 0.005) }
        };
        (0..steps).map(step).collect()
    }

    fn verdicts(a: &[Rounds], b: &[Rounds]) -> Vec<Change> {
        let found: Vec<Difference> = a.iter().zip(b).map(|(a, b)| compare(a, b).unwrap()).collect();
        let ps: Vec<f64> = found.iter().map(|difference| difference.test.p).collect();
        let adjusted = multiple::benjamini_hochberg(&ps);
        found.iter().zip(adjusted).map(|(found, p)| found.change(p, 0.05)).collect()
    }

    /// Of [`PAIRS`] pairs of runs of `steps`, those in which any is one of `wanted`.
    fn called(
        steps: usize,
        between_runs: f64,
        (slower, machine): (f64, f64),
        wanted: &[Change],
    ) -> usize {
        let mut rng = fastrand::Rng::with_seed(11);
        let pair = |_: &usize| {
            let a = run(&mut rng, steps, between_runs, 1.0, 1.0);
            let b = run(&mut rng, steps, between_runs, slower, machine);
            verdicts(&a, &b).iter().any(|verdict| wanted.contains(verdict))
        };
        (0..PAIRS).filter(pair).count()
    }

    const DIFFERENT: [Change; 2] = [Change::Slower, Change::Faster];
    const EQUAL: (f64, f64) = (1.0, 1.0);

    #[test]
    fn equal_runs_are_seldom_called_different() {
        let wrong = called(STEPS, 0.02, EQUAL, &DIFFERENT);
        assert!(wrong <= 1, "{wrong} of {PAIRS} with 2 % between runs");
        let wrong = called(1, 0.025, EQUAL, &DIFFERENT);
        assert!(wrong <= 2, "{wrong} of {PAIRS} with 2.5 % between runs");
    }

    #[test]
    fn the_test_over_rounds_alone_would_call_most_equal_runs_different() {
        let mut rng = fastrand::Rng::with_seed(12);
        let mut run = || run(&mut rng, STEPS, 0.02, 1.0, 1.0);
        let called = (0..PAIRS).filter(|_| {
            let differ = |(a, b): (&Rounds, &Rounds)| {
                let test = rank::mann_whitney(&a.cost, &b.cost).unwrap();
                test.p <= ALPHA / STEPS as f64
            };
            run().iter().zip(&run()).any(differ)
        });
        let called = called.count();
        assert!(called * 2 > PAIRS, "{called} of {PAIRS}");
    }

    #[test]
    fn a_fifth_more_is_found() {
        let found = called(1, 0.02, (1.2, 1.0), &[Change::Slower]);
        assert!(found >= 99, "{found} of {PAIRS} with 2 % between runs");
        let found = called(1, 0.025, (1.2, 1.0), &[Change::Slower]);
        assert!(found >= 95, "{found} of {PAIRS} with 2.5 % between runs");
        let found = called(1, 0.02, (1.0 / 1.2, 1.0), &[Change::Faster]);
        assert!(found >= 99, "{found} of {PAIRS} faster");
    }

    #[test]
    fn a_machine_that_is_slower_itself_is_no_finding() {
        let wrong = called(1, 0.02, (1.0, 1.3), &DIFFERENT);
        assert!(wrong <= 1, "{wrong} of {PAIRS}");
        let undecided = called(1, 0.02, (1.0, 1.3), &[Change::Insufficient]);
        assert!(undecided >= 99, "{undecided} of {PAIRS}");
    }

    #[test]
    fn a_neighbour_in_half_of_the_rounds_hides_nothing() {
        let side = |level: f64, from: usize| {
            let slow = |i: usize| if (from..from + 5).contains(&i) { 1.3 } else { 1.0 };
            Rounds {
                cost: (0..10).map(|i| level * slow(i) + i as f64 / 100.0).collect(),
                reference: (0..10).map(|i| 500.0 * slow(i)).collect(),
            }
        };
        let found = compare(&side(100.0, 0), &side(120.0, 5)).unwrap();
        assert_eq!(found.n, [5, 5]);
        assert_eq!(found.change(found.test.p, 0.05), Change::Slower, "{found:?}");
        let found = compare(&side(100.0, 0), &side(100.0, 5)).unwrap();
        assert_eq!(found.change(found.test.p, 0.05), Change::NoDifference, "{found:?}");
    }

    #[test]
    fn one_undisturbed_round_shows_that_the_others_were_disturbed() {
        let side = |costs: [f64; 3]| Rounds {
            cost: (0..10).map(|i| costs[i.min(2)] + i as f64 / 100.0).collect(),
            reference: Vec::new(),
        };
        let quiet = side([100.0; 3]);
        let found = compare(&quiet, &side([100.0, 130.0, 130.0])).unwrap();
        assert!(found.ratio.low > 1.05 && found.test.p < 0.05, "{found:?}");
        assert_eq!(found.change(found.test.p, 0.05), Change::Insufficient);
        let found = compare(&quiet, &side([130.0; 3])).unwrap();
        assert_eq!(found.change(found.test.p, 0.05), Change::Slower);
    }

    #[test]
    fn few_rounds_decide_nothing() {
        let side = |cost: f64, n: usize| Rounds {
            cost: (0..n).map(|i| cost + i as f64 / 100.0).collect(),
            reference: Vec::new(),
        };
        let verdict = |n: usize| {
            let found = compare(&side(100.0, n), &side(200.0, 10)).unwrap();
            found.change(found.test.p, 0.05)
        };
        assert_eq!(verdict(4), Change::Insufficient);
        assert_eq!(verdict(5), Change::Slower);
        assert!(compare(&side(100.0, 2), &side(100.0, 10)).is_none());
        assert!(compare(&side(-1.0, 5), &side(0.0, 5)).is_none());
    }
}
