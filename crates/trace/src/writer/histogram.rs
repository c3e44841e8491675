//! Counts values into histograms that this thread alone writes.

use std::sync::atomic::{Ordering, fence};

use super::flow::Publish;
use crate::layout::{Block, Histogram, METRICS, TO_PUBLISH, TOTAL, bucket_of};

impl Block {
    /// Values measured at `now` follow. One look for all histograms: a message counts into ten.
    #[inline(always)]
    pub(crate) fn enter_second(&self, now: u64) {
        let second = now / 1_000_000_000;
        // Every message counts into this one.
        if second != self.metrics[TOTAL].second.load_relaxed() {
            self.next_second(second);
        }
    }

    #[cold]
    fn next_second(&self, second: u64) {
        for histogram in &self.metrics {
            histogram.next_second(second);
        }
        // The maxima that follow belong to this second.
        fence(Ordering::Release);
    }

    /// Where the gaps before a publish of this name are counted.
    #[inline(always)]
    pub(crate) fn named(&self, publish: Publish) -> Option<&Histogram> {
        let metric = (TO_PUBLISH + publish.index as usize).min(METRICS - 1);
        (publish.name != 0).then(|| &self.metrics[metric])
    }
}

impl Histogram {
    #[inline(always)]
    pub(crate) fn count(&self, value: u64) {
        self.count_bucket(bucket_of(value));
        self.add(1, value, value);
    }

    /// The bucket alone: `add` follows.
    #[inline(always)]
    pub(crate) fn count_bucket(&self, bucket: usize) {
        self.buckets[bucket].add_as_owner(1);
    }

    /// Some values whose buckets are counted: how many, their sum and the greatest.
    #[inline(always)]
    pub(crate) fn add(&self, count: u64, sum: u64, maximum: u64) {
        self.count.add_as_owner(count);
        self.sum.add_as_owner(sum);
        if maximum > self.maximum.load_relaxed() {
            self.maximum.store_relaxed(maximum);
        }
    }

    /// In this order a reader that finds the seconds unchanged after its copy has maxima that
    /// belong to them. A second without values leaves the earlier one as it is.
    fn next_second(&self, second: u64) {
        let maximum = self.maximum.load_relaxed();
        if maximum != 0 {
            self.earlier_second.store_release(0);
            self.earlier_maximum.store_release(maximum);
            self.earlier_second.store_release(self.second.load_relaxed());
            self.maximum.store_release(0);
        }
        self.second.store_release(second);
    }
}
