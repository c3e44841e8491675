//! What the calls in short windows say of all calls: how many there are a second, and how long they take.
//!
//! The block that is drawn again is the window, not the call: calls that follow each other are alike.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::histogram::PRECISION_KERNEL;
use model::{
    CallDuration, Estimate, Histogram, Metric, RecorderPart, Run, SampledCall, SampledCalls,
    Syscall,
};
use stats::Interval;
use stats::censored::{self, Seen};
use stats::resample::interval_of_blocks;

/// Blocks of windows, at most: of a long run windows that follow each other are one.
const BLOCKS: usize = 40;
const CONFIDENCE: f64 = 0.95;

/// `None` if calls were not looked at in windows; without a window there are no calls.
pub fn sampled_calls(run: &Run) -> Option<SampledCalls> {
    let is_sampled = |part: RecorderPart| part == RecorderPart::SampledCalls;
    if !run.capabilities.iter().any(|one| is_sampled(one.part) && one.on) {
        return None;
    }
    let windows = Windows::of(run);
    let mut seen = BTreeMap::<Syscall, Call>::new();
    for second in &run.seconds {
        let (call, is_censored) = match second.metric {
            Metric::SampledSyscall(call) => (call, false),
            Metric::CensoredSyscall(call) => (call, true),
            _ => continue,
        };
        let Some(block) = windows.block_of.get(&second.start_ns) else { continue };
        let call = seen.entry(call).or_insert_with(|| Call::new(windows.blocks_ns.len()));
        call.add(*block, &second.histogram, is_censored);
    }
    let calls = seen.into_iter().map(|(number, call)| call.estimated(number, &windows.blocks_ns));
    let mut calls: Vec<SampledCall> = calls.collect();
    calls.sort_by_key(|call| (Reverse(call.n), call.call));
    let windows_ns = windows.blocks_ns.iter().sum();
    Some(SampledCalls { windows: windows.count, windows_ns, calls })
}

/// The windows of a run.
struct Windows {
    count: u64,
    /// How long those of each block were.
    blocks_ns: Vec<u64>,
    /// By when their batch began.
    block_of: BTreeMap<u64, usize>,
}

impl Windows {
    fn of(run: &Run) -> Windows {
        let windows = run.seconds.iter().filter(|second| second.metric == Metric::CallWindow);
        let begins: BTreeSet<u64> = windows.clone().map(|second| second.start_ns).collect();
        let per_block = begins.len().div_ceil(BLOCKS).max(1);
        let block_of: BTreeMap<u64, usize> =
            begins.iter().enumerate().map(|(n, begin)| (*begin, n / per_block)).collect();
        let mut blocks_ns = vec![0; begins.len().div_ceil(per_block)];
        let mut count = 0;
        for second in windows {
            count += second.histogram.count();
            blocks_ns[block_of[&second.start_ns]] += second.histogram.sum();
        }
        Windows { count, blocks_ns, block_of }
    }
}

/// What was seen of one call, by its bucket, and for each block: exact, and censored.
struct Call {
    buckets: BTreeMap<u32, (Vec<u64>, Vec<u64>)>,
    blocks: usize,
}

impl Call {
    fn new(blocks: usize) -> Call {
        Call { buckets: BTreeMap::new(), blocks }
    }

    fn add(&mut self, block: usize, histogram: &Histogram, is_censored: bool) {
        for (bucket, count) in histogram.buckets() {
            let none = || (vec![0; self.blocks], vec![0; self.blocks]);
            let (exact, censored) = self.buckets.entry(bucket).or_insert_with(none);
            let counts = if is_censored { censored } else { exact };
            counts[block] += count;
        }
    }

    fn estimated(self, call: Syscall, blocks_ns: &[u64]) -> SampledCall {
        let seen = self.buckets.into_iter().map(|(bucket, (exact, censored))| {
            let value = Histogram::bounds_of(bucket, PRECISION_KERNEL).1;
            Seen { value, exact, censored }
        });
        let seen: Vec<Seen> = seen.collect();
        let of_block = |block: usize| -> u64 {
            seen.iter().map(|one| one.exact[block] + one.censored[block]).sum()
        };
        let counts: Vec<u64> = (0..blocks_ns.len()).map(of_block).collect();
        let censored: u64 = seen.iter().flat_map(|one| &one.censored).sum();
        let n = counts.iter().sum();
        let rate = |drawn: &[u32]| weighted(&counts, drawn) * 1e9 / weighted(blocks_ns, drawn);
        let per_second =
            interval_of_blocks(counts.len(), CONFIDENCE, |drawn| Some(rate(drawn))).map(estimate);
        let quantile = |q| duration(&seen, q, n, counts.len());
        SampledCall { call, n, censored, per_second, p50: quantile(0.5), p99: quantile(0.99) }
    }
}

fn weighted(values: &[u64], drawn: &[u32]) -> f64 {
    values.iter().zip(drawn).map(|(value, times)| *value as f64 * f64::from(*times)).sum()
}

fn duration(seen: &[Seen], q: f64, n: u64, blocks: usize) -> CallDuration {
    if !stats::quantile::carries(n, q) {
        return CallDuration::TooFew;
    }
    let of_drawn = |drawn: &[u32]| censored::quantile(seen, q, drawn);
    if of_drawn(&vec![1; blocks]).is_none() {
        return CallDuration::MoreThan(seen.last().map_or(0, |longest| longest.value));
    }
    let interval = interval_of_blocks(blocks, CONFIDENCE, of_drawn);
    interval.map_or(CallDuration::TooFew, |interval| CallDuration::Known(estimate(interval)))
}

fn estimate(interval: Interval) -> Estimate {
    Estimate { value: interval.estimate, low: interval.low, high: interval.high }
}

#[cfg(test)]
mod tests {
    use model::{Capability, MetricSecond};

    use super::*;
    use crate::testing::RunBuilder;

    const MS: u64 = 1_000_000;

    fn second(at: u64, metric: Metric, values: &[u64]) -> MetricSecond {
        let mut histogram = Histogram::new(PRECISION_KERNEL);
        values.iter().for_each(|value| histogram.record(*value));
        MetricSecond { tgid: 10, metric, start_ns: at, histogram }
    }

    fn run(windows: u64) -> Run {
        let mut run = RunBuilder::new().build();
        let part = RecorderPart::SampledCalls;
        run.capabilities.push(Capability { part, on: true, because: String::new() });
        let [read, poll] = ["read", "poll"].map(|name| Syscall::named(name).unwrap());
        for at in 0..windows {
            let reads = if at % 2 == 0 { 180 } else { 220 };
            run.seconds.push(second(at, Metric::CallWindow, &[20 * MS]));
            run.seconds.push(second(at, Metric::SampledSyscall(read), &vec![2_000; reads]));
            run.seconds.push(second(at, Metric::CensoredSyscall(poll), &[(at % 20) * MS; 2]));
        }
        run
    }

    #[test]
    fn calls_a_second_and_their_durations_have_intervals() {
        let found = sampled_calls(&run(100)).unwrap();
        assert_eq!((found.windows, found.windows_ns), (100, 2_000 * MS));
        let [read, poll] = &found.calls[..] else { panic!("{found:?}") };
        let rate = read.per_second.unwrap();
        assert_eq!((read.n, read.censored, rate.value), (20_000, 0, 10_000.0));
        assert!(rate.low > 9_000.0 && rate.high < 11_000.0, "{rate:?}");
        let CallDuration::Known(p99) = read.p99 else { panic!("{read:?}") };
        assert!(p99.value >= 2_000.0 && p99.high < 2_100.0, "{p99:?}");
        assert_eq!((poll.n, poll.censored), (200, 200));
        let CallDuration::MoreThan(followed) = poll.p50 else { panic!("{poll:?}") };
        assert!((19 * MS..20 * MS).contains(&followed), "{followed}");
        assert_eq!(poll.p99, CallDuration::TooFew);
    }

    #[test]
    fn two_windows_are_too_few_and_without_any_that_is_said() {
        let two = sampled_calls(&run(2)).unwrap();
        assert_eq!((two.calls[0].n, two.calls[0].per_second), (400, None));
        assert_eq!(two.calls[0].p50, CallDuration::TooFew);
        let none = sampled_calls(&run(0)).unwrap();
        assert_eq!((none.windows, none.calls), (0, Vec::new()));
        assert_eq!(sampled_calls(&RunBuilder::new().build()), None);
    }
}
