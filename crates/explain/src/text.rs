//! Numbers in sentences: those of the house, and quantiles with their n.

use model::Histogram;
pub use model::units::{count, counted, duration, mean, percent, share, times};

/// Fewest values for which the 97.5 % upper bound of p99 is finite (order statistics).
const P99_NEEDS: u64 = 368;

/// Fastest, median and a tail no further out than the count carries.
pub fn quantiles(histogram: &Histogram) -> String {
    let at = |q| duration(histogram.quantile(q).unwrap_or(0));
    let tail =
        if histogram.count() >= P99_NEEDS { format!("p99 {}, ", at(0.99)) } else { String::new() };
    format!(
        "fastest {}, p50 {}, {tail}longest {} (n = {})",
        duration(histogram.min().unwrap_or(0)),
        at(0.5),
        duration(histogram.max().unwrap_or(0)),
        count(histogram.count())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_the_count_cannot_carry_is_not_printed() {
        let mut few = Histogram::new(5);
        (1..=100).for_each(|v| few.record(v * 1000));
        assert!(!quantiles(&few).contains("p99"));
        (1..=300).for_each(|v| few.record(v * 1000));
        assert!(quantiles(&few).contains("p99"));
    }
}
