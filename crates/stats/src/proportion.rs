//! How often something was there: in so many of so many runs.

/// In how many of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Runs in which it was there.
    pub with: usize,
    /// Runs.
    pub of: usize,
}

/// Rates below this are excluded with less than 95 %.
const CONFIDENCE: f64 = 0.95;

/// The one-sided upper 95 % bound of a rate (Clopper and Pearson 1934): 0 of 10 leaves 0.26, 0 of
/// 29 leaves 0.10, 0 of 59 leaves 0.05. `None` of no runs.
pub fn upper_bound(count: Count) -> Option<f64> {
    if count.of == 0 || count.with > count.of {
        return None;
    }
    if count.with == count.of {
        return Some(1.0);
    }
    // The rate at which so few, or fewer, are seen in 5 %.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let rate = (low + high) / 2.0;
        if at_most(count, rate) > 1.0 - CONFIDENCE {
            low = rate;
        } else {
            high = rate;
        }
    }
    Some(high)
}

/// Fisher's exact test, one-sided: how likely are so few in `second`, or fewer, if both sides have
/// the same rate? 10 of 10 against 0 of 10: 5e-6; 4 of 10 against 0 of 10: 0.043.
pub fn fisher_fewer(first: Count, second: Count) -> f64 {
    let (with, all) = (first.with + second.with, first.of + second.of);
    let ways = |k: usize| {
        (log_choose(second.of, k) + log_choose(first.of, with - k) - log_choose(all, with)).exp()
    };
    let least = with.saturating_sub(first.of);
    (least..=second.with).map(ways).sum::<f64>().min(1.0)
}

/// The same, two-sided: all tables that are no more likely than this one.
pub fn fisher(first: Count, second: Count) -> f64 {
    /// Two tables of the same probability may differ by rounding.
    const ROUNDING: f64 = 1.0 + 1e-9;
    let (with, all) = (first.with + second.with, first.of + second.of);
    let ways = |k: usize| {
        (log_choose(second.of, k) + log_choose(first.of, with - k) - log_choose(all, with)).exp()
    };
    let seen = ways(second.with);
    let possible = with.saturating_sub(first.of)..=with.min(second.of);
    possible.map(ways).filter(|p| *p <= seen * ROUNDING).sum::<f64>().min(1.0)
}

/// Probability of `count.with` or fewer, each of `count.of` being there at this rate.
fn at_most(count: Count, rate: f64) -> f64 {
    let term = |k: usize| {
        let rest = (count.of - k) as f64;
        (log_choose(count.of, k) + k as f64 * rate.ln() + rest * (1.0 - rate).ln()).exp()
    };
    // 0 times the logarithm of 0 is none.
    if rate <= 0.0 { 1.0 } else { (0..=count.with).map(term).sum() }
}

fn log_choose(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| (((n - k + i) as f64) / i as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(with: usize, of: usize) -> Count {
        Count { with, of }
    }

    #[test]
    fn what_was_never_seen_may_still_be_there() {
        let bound = |of| upper_bound(count(0, of)).unwrap();
        // 1 - 0.05^(1/n)
        for (of, expected) in [(10, 0.2589), (29, 0.0981), (59, 0.0495)] {
            assert!((bound(of) - expected).abs() < 1e-3, "{of}: {}", bound(of));
        }
        assert!((upper_bound(count(1, 10)).unwrap() - 0.3942).abs() < 1e-3);
        assert_eq!(upper_bound(count(10, 10)), Some(1.0));
        assert_eq!(upper_bound(count(0, 0)), None);
    }

    #[test]
    fn fishers_test_gives_the_values_of_the_tables() {
        assert!((fisher(count(10, 10), count(0, 10)) - 1.0825e-5).abs() < 1e-8);
        assert!((fisher_fewer(count(10, 10), count(0, 10)) - 5.4125e-6).abs() < 1e-9);
        assert!((fisher(count(4, 10), count(0, 10)) - 0.0867).abs() < 1e-3);
        assert!((fisher(count(5, 10), count(5, 10)) - 1.0).abs() < 1e-9);
        assert!((fisher(count(0, 10), count(0, 10)) - 1.0).abs() < 1e-9);
        // Fisher's own: 8 cups of tea, 4 with milk first, all told rightly: 1/70 on one side.
        assert!((fisher_fewer(count(4, 4), count(0, 4)) - 1.0 / 70.0).abs() < 1e-12);
    }
}
