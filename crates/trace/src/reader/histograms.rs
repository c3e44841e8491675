//! The histograms: what they counted since the last look. The file holds sums since it was made,
//! so a reader that comes late, or not at all, costs the writer nothing.

use std::collections::HashMap;
use std::mem::{offset_of, size_of};

use super::error::{ReadError, refused};
use super::header::Tables;
use super::source::{Copied, Entry, Source};
use super::tables::Flow;
use crate::layout::{self, BUCKETS, Block, CLAIMED, Histogram, TO_POINT, TO_PUBLISH, bounds_of};

/// What a histogram measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Receipt to end.
    Total,
    /// Receipt to logic start.
    Infrastructure,
    /// Logic start to end.
    Logic,
    /// Between two publishes, or logic start and the first.
    Gap,
    /// Receipt to the infrastructure point of this place.
    ToPoint(u32),
    /// The gap before the publish of this place.
    ToPublish(u32),
}

impl Metric {
    fn of(index: usize) -> Metric {
        match index {
            layout::TOTAL => Metric::Total,
            layout::INFRASTRUCTURE => Metric::Infrastructure,
            layout::LOGIC => Metric::Logic,
            layout::GAP => Metric::Gap,
            point if point < TO_PUBLISH => Metric::ToPoint((point - TO_POINT) as u32),
            publish => Metric::ToPublish((publish - TO_PUBLISH) as u32),
        }
    }
}

/// What one thread counted of one metric of one flow since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Index of the thread.
    pub thread: u32,
    /// Id of the flow.
    pub flow: u32,
    /// What was measured.
    pub metric: Metric,
    /// (bucket, how many), lowest first, none empty; p = 5.
    pub buckets: Vec<(u32, u64)>,
    /// Sum of the values, ns; held within what the buckets allow.
    pub sum: u64,
    /// Seconds (CLOCK_MONOTONIC) and the greatest value of each: of the last second that had
    /// values and of the one before it, where they are known.
    pub maxima: Vec<(u64, u64)>,
}

impl Counted {
    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Lowest value that the buckets allow.
    pub fn low(&self) -> u64 {
        self.buckets.first().map_or(0, |(bucket, _)| bounds_of(*bucket as usize).0)
    }

    /// Highest value that the buckets allow; of the last bucket its lowest, 2^37 - 2^31 ns.
    pub fn high(&self) -> u64 {
        let bucket = self.buckets.last().map_or(0, |(bucket, _)| *bucket as usize);
        if bucket + 1 == BUCKETS { bounds_of(bucket).0 } else { bounds_of(bucket).1 }
    }
}

/// What has been seen of each histogram.
pub(crate) struct Seen {
    of: HashMap<(usize, usize), Cumulative>,
    /// Bytes that they take, and may take.
    memory: usize,
    most: usize,
}

/// Most buckets are empty.
struct Cumulative {
    count: u64,
    sum: u64,
    /// (bucket, how many), lowest first, none empty.
    buckets: Box<[(u32, u64)]>,
}

impl Cumulative {
    fn memory(&self) -> usize {
        size_of::<((usize, usize), Cumulative)>() + size_of_val(&*self.buckets)
    }

    fn in_bucket(&self, bucket: u32) -> u64 {
        let place = self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
        place.map_or(0, |place| self.buckets[place].1)
    }
}

impl Seen {
    pub fn within(most: usize) -> Seen {
        Seen { of: HashMap::new(), memory: 0, most }
    }

    pub fn memory(&self) -> usize {
        self.memory
    }

    pub fn keep_within(&mut self, most: usize) {
        self.most = most;
    }

    pub fn look(
        &mut self,
        source: &impl Source,
        tables: &Tables,
        flows: &[Flow],
    ) -> Result<Vec<Counted>, ReadError> {
        let table = &tables.blocks;
        let mut all = Vec::new();
        for block in 0..table.entries {
            let copy = Copied::acquire(source, table.at(block), offset_of!(Block, metrics))?;
            let head = copy.entry();
            if head.u32(offset_of!(Block, state)) != CLAIMED {
                continue;
            }
            // Written before the state: copied after it was seen.
            let copy = Copied::acquire(source, table.at(block), offset_of!(Block, metrics))?;
            let head = copy.entry();
            let thread = head.u32(offset_of!(Block, thread));
            let flow = head.u32(offset_of!(Block, flow));
            if thread as usize >= tables.threads.entries
                || !(1..=tables.flows.entries).contains(&(flow as usize))
            {
                let why = format!("histograms of thread {thread} and flow {flow}, which are none");
                return Err(refused(head.offset, why));
            }
            // A flow that was registered after `flows` was read is for the next look.
            let Some(known) = flows.get(flow as usize - 1) else { continue };
            let points = TO_POINT..TO_POINT + known.points.len();
            let publishes = TO_PUBLISH..TO_PUBLISH + known.publishes.len();
            for index in (0..TO_POINT).chain(points).chain(publishes) {
                let offset = table.at(block)
                    + (offset_of!(Block, metrics) + index * size_of::<Histogram>()) as u64;
                if let Some((buckets, sum, maxima)) =
                    self.difference(source, offset, (block, index))?
                {
                    let metric = Metric::of(index);
                    let mut counted = Counted { thread, flow, metric, buckets, sum, maxima };
                    counted.sum = plausible(&counted);
                    all.push(counted);
                }
            }
        }
        Ok(all)
    }

    /// Buckets, sum and maxima since the last look, if there are any.
    #[allow(clippy::type_complexity, reason = "taken apart at once, by the one caller")]
    fn difference(
        &mut self,
        source: &impl Source,
        offset: u64,
        which: (usize, usize),
    ) -> Result<Option<(Vec<(u32, u64)>, u64, Vec<(u64, u64)>)>, ReadError> {
        let before = self.of.get(&which);
        let count = Copied::acquire(source, offset, 8)?.entry().u64(0);
        if count == before.map_or(0, |before| before.count) {
            return Ok(None);
        }
        let copy = Copied::acquire(source, offset, size_of::<Histogram>())?;
        let again = Copied::acquire(source, offset, offset_of!(Histogram, buckets))?;
        let (cells, _) = copy.bytes[offset_of!(Histogram, buckets)..].as_chunks::<8>();
        let cells = || (0..).zip(cells.iter().map(|cell| u64::from_le_bytes(*cell)));
        let now = Cumulative {
            count,
            sum: copy.entry().u64(offset_of!(Histogram, sum)),
            buckets: cells().filter(|(_, value)| *value > 0).collect(),
        };
        let mut buckets = Vec::new();
        for (bucket, value) in cells() {
            let earlier = before.map_or(0, |before| before.in_bucket(bucket));
            match value.checked_sub(earlier) {
                None => return Err(refused(offset, "a histogram counts backwards")),
                Some(0) => {}
                Some(more) => buckets.push((bucket, more)),
            }
        }
        let sum = now.sum.wrapping_sub(before.map_or(0, |before| before.sum));
        self.memory = self.memory - before.map_or(0, Cumulative::memory) + now.memory();
        if self.memory > self.most {
            let most = self.most >> 20;
            return Err(refused(offset, format!("the histograms need more than {most} MiB")));
        }
        self.of.insert(which, now);
        Ok((!buckets.is_empty()).then(|| (buckets, sum, maxima(copy.entry(), again.entry()))))
    }
}

/// The maxima whose seconds are the same in both copies.
fn maxima(copy: Entry, again: Entry) -> Vec<(u64, u64)> {
    let last = offset_of!(Histogram, second);
    let earlier = offset_of!(Histogram, earlier_second);
    if copy.u64(last) == copy.u64(earlier) {
        return Vec::new();
    }
    let values = [offset_of!(Histogram, earlier_maximum), offset_of!(Histogram, maximum)];
    [earlier, last]
        .into_iter()
        .zip(values)
        .filter(|(second, value)| {
            copy.u64(*second) != 0
                && copy.u64(*second) == again.u64(*second)
                && copy.u64(*value) != 0
        })
        .map(|(second, value)| (copy.u64(second), copy.u64(value)))
        .collect()
}

/// The sum, as far as the buckets allow it: the writer may have been between the two, and a file
/// that lies shall not give a mean outside of its own values.
fn plausible(counted: &Counted) -> u64 {
    let bound = |of: fn((u64, u64)) -> u64| {
        counted.buckets.iter().fold(0u64, |sum, (bucket, count)| {
            sum.saturating_add(of(bounds_of(*bucket as usize)).saturating_mul(*count))
        })
    };
    counted.sum.clamp(bound(|(low, _)| low), bound(|(_, high)| high))
}
