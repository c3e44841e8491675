//! The one histogram of whylag: log-linear integer-nanosecond buckets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Log-linear histogram of non-negative integers (nanoseconds).
///
/// A value `v` is counted in bucket `(shift << p) + (v >> shift)` with
/// `shift = max(0, floor(log2 v) - p)`: buckets are `2^-p` wide relative to their value (3.1 % at
/// p = 5, 0.78 % at p = 7, where they coincide with HdrHistogram's at 2 significant digits).
/// Count, sum, min and max are exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Histogram {
    precision: u8,
    buckets: BTreeMap<u32, u64>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

/// A histogram as it was written, not yet known to be one.
#[derive(Deserialize)]
struct Parts {
    precision: u8,
    buckets: BTreeMap<u32, u64>,
    sum: u64,
    min: u64,
    max: u64,
}

impl TryFrom<Parts> for Histogram {
    type Error = String;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        let Parts { precision, buckets, sum, min, max } = parts;
        if precision > MAX_PRECISION {
            return Err(format!("no histogram has the precision {precision}"));
        }
        match buckets.last_key_value() {
            Some((index, _)) if *index > Self::index_of(u64::MAX, precision) => {
                Err(format!("a histogram of precision {precision} has no bucket {index}"))
            }
            _ => Ok(Histogram::from_parts(precision, buckets, sum, min, max)),
        }
    }
}

/// The highest precision of a histogram.
const MAX_PRECISION: u8 = 14;

/// Precision used by the kernel side and by applications.
pub const PRECISION_KERNEL: u8 = 5;

impl Histogram {
    /// An empty histogram of precision `p` (at most 14).
    pub fn new(precision: u8) -> Self {
        debug_assert!(precision <= MAX_PRECISION);
        Histogram { precision, buckets: BTreeMap::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// From bucket counts and the exact moments kept with them. `min` of an empty histogram is
    /// ignored.
    pub fn from_parts(
        precision: u8,
        buckets: impl IntoIterator<Item = (u32, u64)>,
        sum: u64,
        min: u64,
        max: u64,
    ) -> Self {
        let mut histogram = Histogram::new(precision);
        for (index, count) in buckets {
            if count > 0 {
                let sum = histogram.buckets.entry(index).or_default();
                *sum = sum.saturating_add(count);
                histogram.count = histogram.count.saturating_add(count);
            }
        }
        if histogram.count > 0 {
            histogram.sum = sum;
            histogram.min = min;
            histogram.max = max;
        }
        histogram
    }

    /// The bucket that counts `value` at precision `p`.
    pub fn index_of(value: u64, precision: u8) -> u32 {
        let p = u32::from(precision);
        let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(p);
        (shift << p) + (value >> shift) as u32
    }

    /// The lowest and the highest value that bucket `index` counts at precision `p`; an index
    /// beyond the last bucket of 64-bit values is taken as the last.
    pub fn bounds_of(index: u32, precision: u8) -> (u64, u64) {
        let p = u32::from(precision);
        let index = index.min(Self::index_of(u64::MAX, precision));
        let shift = (index >> p).saturating_sub(1);
        let low = u64::from(index - (shift << p)) << shift;
        (low, low + ((1u64 << shift) - 1))
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        *self.buckets.entry(Self::index_of(value, self.precision)).or_default() += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all of `other`. A bucket of another precision is counted by its lowest value.
    pub fn merge(&mut self, other: &Histogram) {
        for (index, count) in &other.buckets {
            let index = match other.precision == self.precision {
                true => *index,
                false => Self::index_of(Self::bounds_of(*index, other.precision).0, self.precision),
            };
            let sum = self.buckets.entry(index).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The value at quantile `q` (0 to 1): the highest value of the bucket that holds it, but no
    /// more than the exact maximum. `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in &self.buckets {
            seen = count.saturating_add(seen);
            if seen >= rank {
                return Some(Self::bounds_of(*index, self.precision).1.min(self.max));
            }
        }
        Some(self.max)
    }

    /// Precision p.
    pub fn precision(&self) -> u8 {
        self.precision
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Exact minimum, `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Exact maximum, `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean, `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// (bucket index, count), lowest first; empty buckets are left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.buckets.iter().map(|(index, count)| (*index, *count))
    }

    /// (lowest value, highest value, count) of each bucket that is not empty, lowest first.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets().map(|(index, count)| {
            let (low, high) = Self::bounds_of(index, self.precision);
            (low, high, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_within_its_bucket(value in 0u64..(1 << 42), p in 2u8..8) {
            let (low, high) = Histogram::bounds_of(Histogram::index_of(value, p), p);
            prop_assert!(low <= value && value <= high);
            prop_assert!((high - low) as f64 <= value as f64 / f64::from(1u32 << p));
        }

        #[test]
        fn merging_equals_counting_together(a in prop::collection::vec(0u64..1 << 40, 0..50),
                                            b in prop::collection::vec(0u64..1 << 40, 0..50)) {
            let fill = |values: &[u64]| {
                let mut h = Histogram::new(5);
                values.iter().for_each(|v| h.record(*v));
                h
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            prop_assert_eq!(merged, fill(&[a, b].concat()));
        }
    }

    #[test]
    fn buckets_are_contiguous() {
        for index in 0..Histogram::index_of(u64::MAX, 5) {
            let (_, high) = Histogram::bounds_of(index, 5);
            assert_eq!(Histogram::bounds_of(index + 1, 5).0, high + 1, "after bucket {index}");
        }
    }

    #[test]
    fn another_precision_is_merged_by_the_lowest_values() {
        let mut coarse = Histogram::new(2);
        coarse.record(1_000);
        let mut fine = Histogram::new(7);
        [1_000, 9_000].into_iter().for_each(|value| fine.record(value));
        coarse.merge(&fine);
        assert_eq!((coarse.count(), coarse.sum(), coarse.max()), (3, 11_000, Some(9_000)));
        assert_eq!(coarse.buckets().map(|(_, count)| count).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn what_cannot_be_a_histogram_is_not_read() {
        let mut histogram = Histogram::new(5);
        [7, u64::MAX].into_iter().for_each(|value| histogram.record(value));
        let text = serde_json::to_string(&histogram).unwrap();
        let read = |text: &str| serde_json::from_str::<Histogram>(text);
        assert_eq!(read(&text).unwrap(), histogram);
        let last = Histogram::index_of(u64::MAX, 5);
        let beyond = text.replace(&format!("\"{last}\""), &format!("\"{}\"", last + 1));
        assert!(read(&beyond).unwrap_err().to_string().contains("no bucket 1920"), "{beyond}");
        assert!(read(&text.replace("\"precision\":5", "\"precision\":15")).is_err());
    }

    #[test]
    fn quantiles_are_within_a_bucket_and_bounded_by_the_maximum() {
        let mut h = Histogram::new(5);
        (1..=1000u64).for_each(|v| h.record(v * 1000));
        let p50 = h.quantile(0.5).unwrap() as f64;
        assert!((p50 / 500_000.0 - 1.0).abs() < 0.032, "{p50}");
        assert_eq!(h.quantile(1.0), Some(1_000_000));
        assert_eq!(Histogram::new(5).quantile(0.5), None);
    }
}
