//! Counts a value into a histogram that this thread alone writes.

use crate::layout::{Histogram, bucket_of};

impl Histogram {
    /// Counts `value`, which was measured at `now`.
    #[inline(always)]
    pub(crate) fn count(&self, value: u64, now: u64) {
        self.count_bucket(value);
        self.add(1, value, value, now);
    }

    /// The bucket alone: `add` follows.
    #[inline(always)]
    pub(crate) fn count_bucket(&self, value: u64) {
        self.buckets[bucket_of(value)].add_as_owner(1);
    }

    /// Some values whose buckets are counted: how many, their sum and the greatest.
    #[inline(always)]
    pub(crate) fn add(&self, count: u64, sum: u64, maximum: u64, now: u64) {
        self.count.add_as_owner(count);
        self.sum.add_as_owner(sum);
        let second = now / 1_000_000_000;
        if second != self.second.load_relaxed() {
            self.next_second(second);
        }
        if maximum > self.maximum.load_relaxed() {
            self.maximum.store_relaxed(maximum);
        }
    }

    /// In this order a reader that finds the seconds unchanged after its copy has maxima that
    /// belong to them.
    #[cold]
    fn next_second(&self, second: u64) {
        self.earlier_second.store_release(0);
        self.earlier_maximum.store_release(self.maximum.load_relaxed());
        self.earlier_second.store_release(self.second.load_relaxed());
        self.maximum.store_release(0);
        self.second.store_release(second);
    }
}
