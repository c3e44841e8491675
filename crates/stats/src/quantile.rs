//! Which quantiles a number of observations can carry, and the quantile of a few values.

/// The largest `q` worth printing for `n` independent observations: one whose upper 97.5 % bound
/// is finite, that is `1 - q^n >= 0.975`. 368 carry p99, 3,688 p99.9.
pub fn carries(n: u64, q: f64) -> bool {
    n > 0 && 1.0 - q.powf(n as f64) >= 0.975
}

/// Quantile of a sample by linear interpolation (type 7 of Hyndman and Fan 1996); `None` if empty.
pub fn of(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// Median; `None` if empty.
pub fn median(values: &[f64]) -> Option<f64> {
    of(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_books() {
        assert!(!carries(367, 0.99) && carries(368, 0.99));
        assert!(!carries(3687, 0.999) && carries(3688, 0.999));
        assert!(!carries(0, 0.5) && carries(6, 0.5));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
