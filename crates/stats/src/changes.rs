//! Change points in a series of runs, each of which is a vector of values (the logarithms of its
//! quantiles, or a single share).
//!
//! E-divisive with permutations (Matteson and James 2014) is the model: find the place that divides
//! the series most, ask by chance alone how often a series divides so well, go on in both parts. Two
//! things are other here. The measure is the rank CUSUM of each coordinate instead of the energy
//! distance: it is as blind to heavy tails, takes n log n instead of n squared steps, so that
//! months of runs take milliseconds, and with many coordinates it sees a second mode at an equal mean
//! as well, because that moves some quantiles. And what chance alone does is drawn with the
//! correlation between neighbours that the series has: where one slow run makes the next one slow,
//! permutations alone take every wave for a change.

use std::ops::Range;

use crate::quantile;

/// Runs between two changes, at least.
pub const LEAST_SEGMENT: usize = 3;
/// p up to this is a change: less than 5 %, because a series is divided more than once and its
/// correlation is an estimate.
pub const ALPHA: f64 = 0.02;
/// Series that are drawn.
const DRAWS: usize = 199;
/// After so many of them none has to be drawn for a change that is far beyond all of them.
const FIRST_DRAWS: usize = 49;
/// No p is below this: so few draws do not carry it.
const LEAST_P: f64 = 1e-6;
/// From so many draws on that divide as well, p is beyond [`ALPHA`] whatever the others do.
const ENOUGH: usize = 4;
/// Closer to 1 a series has no level that could change.
const MOST_CORRELATED: f64 = 0.9;
/// Changes that are taken out before the correlation is looked at.
const LEVELS: usize = 2;
/// Each level that is taken out makes neighbours look less alike, by this many times (1 + 3r)/n: 1
/// for one mean (Kendall 1954), more where the places are the best ones, by simulation.
const PER_LEVEL: f64 = 3.5;
/// The deviation of normal noise by its median distance from the level.
const PER_DEVIATION: f64 = 1.4826;
/// A place counts by its own chance, and by this part of its neighbours': more dates are within a run,
/// and the first run of a large step keeps its place.
const BESIDE: f64 = 0.9;
const SEED: u64 = 0x0073_6572_6965;

/// A place where a series changes.
///
/// Its place is the one that is most probably within a run of the truth, not the likeliest one, which a
/// single odd run at the edge moves. Of a step of twice the noise it is within a run in 88 of 100, the
/// likeliest place in 85. Who knew both levels beforehand, and that noise is normal, would come to 91
/// (simulated; the suite of docs/series.md gives 83 and 89): it takes a step of 2.5 times the noise until 95 of 100 can be had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first run of the new level.
    pub at: usize,
    /// How often chance alone divides the series as well: (k + 1) / (B + 1) of the draws, weighted,
    /// and where none did, what their own distribution says.
    pub p: f64,
}

/// The changes of a series, in their order. Coordinates that never change count for nothing.
pub fn find(series: &[Vec<f64>]) -> Vec<ChangePoint> {
    let width = series.iter().map(Vec::len).min().unwrap_or(0);
    let columns: Vec<Vec<f64>> =
        (0..width).map(|column| series.iter().map(|run| run[column]).collect()).collect();
    let columns: Vec<Vec<f64>> =
        columns.into_iter().filter(|column| column.iter().any(|v| *v != column[0])).collect();
    let mut found = Vec::new();
    let mut parts = vec![(0, series.len())];
    let mut lot = fastrand::Rng::with_seed(SEED);
    while let Some((from, to)) = parts.pop() {
        let part: Vec<&[f64]> = columns.iter().map(|column| &column[from..to]).collect();
        if let Some(change) = divide(&part, &mut lot) {
            let at = from + change.at;
            found.push(ChangePoint { at, ..change });
            parts.extend([(from, at), (at, to)]);
        }
    }
    found.sort_by_key(|change| change.at);
    // Only between the changes next to it is what is left the noise.
    for place in 0..found.len() {
        let from = place.checked_sub(1).map_or(0, |before| found[before].at);
        let to = found.get(place + 1).map_or(series.len(), |next| next.at);
        found[place].at = dated(&columns, from..to, found[place].at);
    }
    found
}

/// The place that divides a part best, if chance alone does not do so.
fn divide(columns: &[&[f64]], lot: &mut fastrand::Rng) -> Option<ChangePoint> {
    let n = columns.first()?.len();
    if n < 2 * LEAST_SEGMENT {
        return None;
    }
    let scores: Vec<Vec<f64>> = columns.iter().map(|column| normal_scores(column)).collect();
    let (at, seen) = best(&scores);
    let levelled = without_changes(&scores);
    let correlated = correlation(&levelled);
    let mut order: Vec<usize> = (0..n).collect();
    let mut as_well = 0;
    let mut drawn = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let is_looked_at = drawn.len() == FIRST_DRAWS && as_well == 0;
        if is_looked_at && beyond(&drawn, seen) <= LEAST_P {
            break;
        }
        lot.shuffle(&mut order);
        let one: Vec<Vec<f64>> =
            levelled.iter().map(|column| again(column, &order, correlated)).collect();
        let measure = best(&one).1;
        drawn.push(measure);
        as_well += usize::from(measure >= seen);
        if as_well >= ENOUGH {
            return None;
        }
    }
    let counted = (as_well + 1) as f64 / (drawn.len() + 1) as f64;
    let p = if as_well == 0 { counted.min(beyond(&drawn, seen)) } else { counted };
    (p <= ALPHA).then_some(ChangePoint { at, p })
}

/// The place between two changes that is most probably the first run of the new level, or next to it,
/// given the levels on both sides of `at`, where ranks see it. They have seen that there is a change, but
/// not how far a run is from either level. Coordinates mostly move together: all of them say no more
/// than one.
fn dated(columns: &[Vec<f64>], within: Range<usize>, at: usize) -> usize {
    let (n, from) = (within.len(), within.start);
    let mut newer = vec![0.0; n];
    for column in columns {
        let part = &column[within.clone()];
        let (before, after) = part.split_at(at - from);
        let level = |side: &[f64]| quantile::median(side).unwrap_or(0.0);
        let levels = [level(before), level(after)];
        let away = |side: &[f64], level: f64| side.iter().map(move |v| (v - level).abs()).collect();
        let mut residuals: Vec<f64> = away(before, levels[0]);
        residuals.extend::<Vec<f64>>(away(after, levels[1]));
        let noise = (quantile::median(&residuals).unwrap_or(0.0) * PER_DEVIATION).max(1e-9);
        for (newer, value) in newer.iter_mut().zip(part) {
            let [old, new] = levels.map(|level| improbable((value - level) / noise));
            *newer += (old - new) / columns.len() as f64;
        }
    }
    // Of all places, how much more probable it is that the level is the new one from there on.
    let mut sum = 0.0;
    let mut sums: Vec<f64> = newer.iter().rev().map(|one| (sum += one, sum).1).collect();
    sums.reverse();
    let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let chance = |at: usize| (sums[at] - most).exp();
    let with_neighbours = |at: usize| chance(at) + BESIDE * (chance(at - 1) + chance(at + 1));
    let places = LEAST_SEGMENT..=n - LEAST_SEGMENT;
    let place = places.max_by(|a, b| with_neighbours(*a).total_cmp(&with_neighbours(*b)));
    from + place.unwrap_or(LEAST_SEGMENT)
}

/// Minus the logarithm of the probability of a value so many deviations away: as of normal noise up to
/// two, beyond that as of heavier tails (Huber).
fn improbable(deviations: f64) -> f64 {
    const NORMAL_TO: f64 = 2.0;
    let away = deviations.abs();
    if away <= NORMAL_TO { away * away / 2.0 } else { NORMAL_TO * (away - NORMAL_TO / 2.0) }
}

/// How often chance alone comes to `seen` where it never did in so few draws: largest values follow
/// Gumbel's distribution, here by its moments. Never below [`LEAST_P`].
fn beyond(drawn: &[f64], seen: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_9;
    let n = drawn.len() as f64;
    let mean = drawn.iter().sum::<f64>() / n;
    let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let scale = (variance.sqrt() * 6.0f64.sqrt() / std::f64::consts::PI).max(1e-9);
    let at = (seen - (mean - EULER * scale)) / scale;
    (-(-(-at).exp()).exp_m1()).max(LEAST_P)
}

/// Ranks as quantiles of the normal distribution: whatever the tails, what is left is a rank.
fn normal_scores(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let n = values.len() as f64;
    let mut scores = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = |place: &usize| values[order[*place]] == values[order[from]];
        let to = (from..order.len()).take_while(same).count() + from;
        // Equal values share the mean of their ranks.
        let rank = (from + to) as f64 / 2.0 + 0.5;
        for place in from..to {
            scores[order[place]] = normal_quantile(rank / (n + 1.0));
        }
        from = to;
    }
    scores
}

/// Of the standard normal distribution, to 5e-4 (Abramowitz and Stegun 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p).max(1e-300);
    let t = (-2.0 * tail.ln()).sqrt();
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let z = t - top / bottom;
    if p < 0.5 { -z } else { z }
}

/// The place that divides best, and how well: over all coordinates the sum of the squared
/// differences of means in units of their error. Looked at are the whole, its halves and its quarters,
/// each with those between them: a level that comes and goes hides in the whole.
fn best(columns: &[Vec<f64>]) -> (usize, f64) {
    let n = columns[0].len();
    let spreads: Vec<f64> = columns.iter().map(|column| spread(column)).collect();
    let mut found = (LEAST_SEGMENT, 0.0);
    for scale in [1, 2, 4] {
        let length = n / scale;
        if length < 2 * LEAST_SEGMENT {
            break;
        }
        for step in 0..=2 * (scale - 1) {
            let from = (step * length / 2).min(n - length);
            let (at, measure) = best_within(columns, &spreads, from..from + length);
            if measure > found.1 {
                found = (at, measure);
            }
        }
    }
    found
}

fn spread(column: &[f64]) -> f64 {
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    (column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).max(1e-12)
}

fn best_within(columns: &[Vec<f64>], spreads: &[f64], within: Range<usize>) -> (usize, f64) {
    let n = within.len();
    let mut measure = vec![0.0; n + 1];
    for (column, spread) in columns.iter().zip(spreads) {
        let weight = 1.0 / spread;
        // No division in here: of a thousand runs it is done millions of times.
        for (beyond, measure) in beyond_mean(&column[within.clone()]).zip(&mut measure[1..]) {
            *measure += beyond * beyond * weight;
        }
    }
    let places = (LEAST_SEGMENT..=n - LEAST_SEGMENT).map(|at| (at, measure[at] / balance(at, n)));
    let (at, most) = places.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((LEAST_SEGMENT, 0.0));
    (within.start + at, most)
}

/// The sum of what the first value, the first two and so on have beyond the mean of all.
fn beyond_mean(values: &[f64]) -> impl Iterator<Item = f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().scan(0.0, move |beyond, value| {
        *beyond += value - mean;
        Some(*beyond)
    })
}

/// What the squared difference of the means of `at` and of `n - at` values weighs.
fn balance(at: usize, n: usize) -> f64 {
    at as f64 * (n - at) as f64 / n as f64
}

/// The series with the levels between its largest changes taken out, whatever made them.
fn without_changes(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = columns[0].len();
    let mut ends = vec![0, n];
    for _ in 0..LEVELS.min(n / 10) {
        let places = ends.windows(2).filter(|part| part[1] - part[0] >= 2 * LEAST_SEGMENT);
        let largest = places
            .map(|part| {
                let cut: Vec<Vec<f64>> =
                    columns.iter().map(|column| column[part[0]..part[1]].to_vec()).collect();
                let (at, measure) = best(&cut);
                (part[0] + at, measure)
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((at, _)) = largest else { break };
        ends.push(at);
        ends.sort_unstable();
    }
    let levelled = columns.iter().map(|column| {
        let parts = ends.windows(2).flat_map(|part| {
            let values = &column[part[0]..part[1]];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(move |value| value - mean)
        });
        parts.collect()
    });
    levelled.collect()
}

/// How much of a run is in the next one, over all coordinates, of a series whose levels were taken
/// out.
fn correlation(columns: &[Vec<f64>]) -> f64 {
    let n = columns[0].len();
    let each = columns.iter().map(|column| {
        let squares: f64 = column.iter().map(|value| value * value).sum();
        let products: f64 = column.windows(2).map(|two| two[0] * two[1]).sum();
        products / squares.max(1e-12)
    });
    let seen = quantile::median(&each.collect::<Vec<f64>>()).unwrap_or(0.0);
    let levels = 1 + LEVELS.min(n / 10);
    let corrected = seen + PER_LEVEL * levels as f64 * (1.0 + 3.0 * seen) / n as f64;
    // A series that swings from run to run divides less by chance than one drawn by lot.
    corrected.clamp(0.0, MOST_CORRELATED)
}

/// A series of the same correlation from the same news in another order.
fn again(news: &[f64], order: &[usize], correlated: f64) -> Vec<f64> {
    let first = news[order[0]] / (1.0 - correlated * correlated).sqrt();
    let mut last = first;
    let rest = order[1..].iter().map(|place| {
        last = correlated * last + news[*place];
        last
    });
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run: 8 log quantiles that share the noise of the run and have a little of their own.
    struct Runs {
        lot: fastrand::Rng,
        correlated: f64,
        heavy: bool,
        last: f64,
    }

    impl Runs {
        fn new(seed: u64, correlated: f64, heavy: bool) -> Runs {
            Runs { lot: fastrand::Rng::with_seed(seed), correlated, heavy, last: 0.0 }
        }

        fn normal(&mut self) -> f64 {
            let (u, v) = (self.lot.f64().max(1e-12), self.lot.f64());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }

        /// Of noise 1.
        fn whole(&mut self) -> f64 {
            let mut news = self.normal();
            if self.heavy && self.lot.f64() < 0.1 {
                news *= 6.0;
            }
            let keep = self.correlated;
            self.last = keep * self.last + (1.0 - keep * keep).sqrt() * news;
            self.last
        }

        fn run(&mut self, level: f64) -> Vec<f64> {
            let whole = self.whole() + level;
            (0..8).map(|_| whole + 0.2 * self.normal()).collect()
        }
    }

    fn called(correlated: f64, heavy: bool, tried: u64) -> u64 {
        let called = (0..tried).filter(|seed| {
            let mut runs = Runs::new(*seed, correlated, heavy);
            let series: Vec<Vec<f64>> = (0..50).map(|_| runs.run(0.0)).collect();
            !find(&series).is_empty()
        });
        called.count() as u64
    }

    #[test]
    fn a_stationary_series_seldom_changes() {
        // 5 % of 200 are 10; beyond 20 is one in a thousand.
        for (correlated, heavy) in [(0.0, false), (0.0, true), (0.5, false)] {
            let called = called(correlated, heavy, 200);
            assert!(called <= 20, "correlated {correlated}, heavy {heavy}: {called} of 200");
        }
    }

    #[test]
    fn a_step_is_dated() {
        let (mut found, mut dated) = (0, 0);
        for seed in 0..200 {
            let mut runs = Runs::new(1000 + seed, 0.0, false);
            let level = |at: usize| if at < 30 { 0.0 } else { 2.0 };
            let series: Vec<Vec<f64>> = (0..50).map(|at| runs.run(level(at))).collect();
            let changes = find(&series);
            found += u32::from(!changes.is_empty());
            dated += u32::from(changes.iter().any(|change| change.at.abs_diff(30) <= 1));
        }
        // The likeliest place is within a run in 170 of 200, what can be had at best is 182.
        assert!(found >= 190 && dated >= 166, "found {found}, dated {dated} of 200");
    }

    #[test]
    fn a_second_mode_at_an_equal_mean_is_found() {
        let found = (0..40).filter(|seed| {
            let mut runs = Runs::new(2000 + seed, 0.0, false);
            let series: Vec<Vec<f64>> = (0..40)
                .map(|at| {
                    let mut run = runs.run(0.0);
                    if at >= 20 {
                        // What the lower half loses, the upper half gets.
                        run.iter_mut().take(4).for_each(|value| *value -= 2.5);
                        run.iter_mut().skip(4).for_each(|value| *value += 2.5);
                    }
                    run
                })
                .collect();
            find(&series).iter().any(|change| change.at.abs_diff(20) <= 2)
        });
        let found = found.count();
        assert!(found >= 36, "{found} of 40");
    }

    #[test]
    fn several_changes_are_found_and_few_runs_show_nothing() {
        let mut runs = Runs::new(7, 0.0, false);
        let level = |at: usize| [0.0, 5.0, 0.0, 9.0][at / 15];
        let series: Vec<Vec<f64>> = (0..60).map(|at| runs.run(level(at))).collect();
        let places: Vec<usize> = find(&series).iter().map(|change| change.at).collect();
        assert_eq!(places, [15, 30, 45]);
        assert_eq!(find(&series[12..17]), []);
        assert_eq!(find(&vec![vec![1.0]; 50]), []);
        assert_eq!(find(&[]), []);
        // One slow run alone is no change.
        let mut single: Vec<Vec<f64>> = (0..50).map(|_| runs.run(0.0)).collect();
        single[25].iter_mut().for_each(|value| *value += 30.0);
        assert_eq!(find(&single), []);
    }
}
