//! Quantiles of values of which some are only known to be larger than what was seen.
//!
//! A call that began before the window in which it ended is such a value (left out, the short ones alone
//! would be left). Where the windows lie by chance, how much of a call is seen does not depend on how long
//! it takes, which is what the product-limit estimate asks for (Kaplan, Meier 1958, "Nonparametric
//! Estimation from Incomplete Observations").

/// How often a value was seen, block by block.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The value.
    pub value: u64,
    /// How often it was this.
    pub exact: Vec<u64>,
    /// How often it was more.
    pub censored: Vec<u64>,
}

/// The smallest value that a part `q` of all does not exceed, with each block counted as often as
/// `weights` says. `None` if that is more than what was seen of any, or there are none. `seen` is ordered
/// by value.
pub fn quantile(seen: &[Seen], q: f64, weights: &[u32]) -> Option<f64> {
    let sum = |counts: &[u64]| -> f64 {
        counts.iter().zip(weights).map(|(n, weight)| *n as f64 * f64::from(*weight)).sum()
    };
    let sums: Vec<(f64, f64)> =
        seen.iter().map(|one| (sum(&one.exact), sum(&one.censored))).collect();
    let mut left: f64 = sums.iter().map(|(exact, censored)| exact + censored).sum();
    let mut survivors = 1.0;
    for (one, (exact, censored)) in seen.iter().zip(sums) {
        if exact > 0.0 {
            survivors *= 1.0 - exact / left;
            // Sums of parts are not exact.
            if survivors <= 1.0 - q + 1e-9 {
                return Some(one.value as f64);
            }
        }
        left -= exact + censored;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(value: u64, exact: u64, censored: u64) -> Seen {
        Seen { value, exact: vec![exact], censored: vec![censored] }
    }

    #[test]
    fn it_is_the_estimate_of_the_book() {
        // Kaplan and Meier 1958, section 2.1: deaths at 0.8, 3.1, 5.4 and 9.2 months, losses at 1.0, 2.7,
        // 7.0 and 12.1; survivors 7/8, 7/10, 21/40 and 21/80.
        let of_book = [
            (8, 1, 0),
            (10, 0, 1),
            (27, 0, 1),
            (31, 1, 0),
            (54, 1, 0),
            (70, 0, 1),
            (92, 1, 0),
            (121, 0, 1),
        ];
        let seen: Vec<Seen> = of_book.into_iter().map(|(v, e, c)| seen(v, e, c)).collect();
        let below = |survivors: f64| quantile(&seen, 1.0 - survivors, &[1]);
        for (survivors, value) in [(7.0 / 8.0, 8.0), (0.7, 31.0), (21.0 / 40.0, 54.0)] {
            assert_eq!(below(survivors), Some(value));
            assert_ne!(below(survivors - 0.01), Some(value));
        }
        assert_eq!(below(21.0 / 80.0), Some(92.0));
        assert_eq!(below(0.2), None, "more than was seen of any");
    }

    #[test]
    fn without_censored_values_it_is_the_quantile() {
        let seen: Vec<Seen> = (1..=100).map(|value| seen(value, 1, 0)).collect();
        assert_eq!(quantile(&seen, 0.5, &[1]), Some(50.0));
        assert_eq!(quantile(&seen, 0.99, &[1]), Some(99.0));
        assert_eq!(quantile(&[], 0.5, &[1]), None);
    }

    #[test]
    fn windows_that_cut_values_leave_the_quantiles_as_they_are() {
        // Calls one after the other, of 1 to 60 ms, seen through windows of 20 ms at random moments.
        let mut rng = fastrand::Rng::with_seed(5);
        let (mut calls, mut at) = (Vec::new(), 0.0);
        while calls.len() < 200_000 {
            let length = if rng.f64() < 0.8 { 1.0 + rng.f64() } else { 10.0 + 50.0 * rng.f64() };
            calls.push((at, at + length));
            at += length;
        }
        let mut counts = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        let (mut window, mut whole) = (0.0, 0);
        for (begin, end) in &calls {
            while *end > window + 20.0 {
                window += 20.0 + 400.0 * rng.f64();
            }
            if *end < window {
                continue;
            }
            let value = ((end - begin.max(window)) * 100.0) as u64;
            let count = counts.entry(value).or_default();
            match *begin >= window {
                true => (count.0, whole) = (count.0 + 1, whole + 1),
                false => count.1 += 1,
            }
        }
        let seen: Vec<Seen> = counts.iter().map(|(v, (e, c))| seen(*v, *e, *c)).collect();
        let mut lengths: Vec<f64> = calls.iter().map(|(begin, end)| end - begin).collect();
        lengths.sort_by(f64::total_cmp);
        let truth = lengths[lengths.len() * 85 / 100];
        assert!(truth > 20.0, "{truth}");
        assert_eq!(quantile(&seen, 0.85, &[1]), None, "longer than a window");
        let truth = lengths[lengths.len() * 82 / 100];
        let found = quantile(&seen, 0.82, &[1]).unwrap() / 100.0;
        assert!((found / truth - 1.0).abs() < 0.1, "{found} for {truth}");
        let exact: Vec<Seen> = counts.iter().map(|(v, (e, _))| self::seen(*v, *e, 0)).collect();
        let of_whole = quantile(&exact, 0.82, &[1]).unwrap() / 100.0;
        assert!(of_whole < truth / 2.0, "those alone that were seen whole: {of_whole} for {truth}");
    }
}
