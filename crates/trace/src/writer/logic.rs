//! The logic of a message: what it publishes, and its end, which writes everything.

use super::flow::Publish;
use super::record;
use super::thread::{Lane, index_of};
use super::trace::{State, Trace};
use crate::clock;
use crate::layout::{Block, GAP, INFRASTRUCTURE, LOGIC, TO_POINT, TO_PUBLISH, TOTAL, bucket_of};

/// A message whose logic runs. If it is dropped without [`end`](Logic::end), the message counts as
/// abandoned when its trace is begun again.
pub struct Logic<'a> {
    pub(crate) lane: Option<&'a mut Lane>,
    pub(crate) trace: &'a mut Trace,
    pub(crate) block: Option<&'static Block>,
}

impl Logic<'_> {
    /// An outbound message has been sent.
    #[inline]
    pub fn published(&mut self, publish: Publish) {
        let Some(lane) = &mut self.lane else { return };
        let trace = &mut *self.trace;
        let now = clock::now().max(trace.last);
        let gap = now - trace.last;
        let publish =
            if u32::from(publish.flow) == trace.flow { publish } else { Publish::UNNAMED };
        match trace.published.get_mut(trace.publishes as usize) {
            // Counted at the end, all at once: here the next read of the clock would wait for it.
            Some(cell) => *cell = (now, publish),
            None => {
                if let Some(block) = self.block {
                    block.enter_second(now);
                    block.metrics[GAP].count_bucket(bucket_of(gap));
                    if let Some(named) = block.named(publish) {
                        named.count(gap);
                    }
                }
            }
        }
        trace.publishes = trace.publishes.saturating_add(1);
        trace.longest_gap = trace.longest_gap.max(gap);
        trace.last = now;
        lane.change_current(|current| {
            current.last.store_relaxed(now);
            current.last_name.store_relaxed(publish.name);
        });
    }

    /// The message is done.
    #[inline]
    pub fn end(mut self) {
        let Some(lane) = self.lane.take() else { return };
        let trace = &mut *self.trace;
        let now = clock::now().max(trace.last);
        let total = now - trace.t0;
        if let Some(block @ Block { metrics, .. }) = self.block {
            block.enter_second(now);
            metrics[TOTAL].count(total);
            metrics[INFRASTRUCTURE].count(trace.logic_start - trace.t0);
            metrics[LOGIC].count(now - trace.logic_start);
            for (mark, metric) in trace.marks().iter().zip(&metrics[TO_POINT..TO_PUBLISH]) {
                let time = mark.time.load_acquire();
                if time != 0 {
                    metric.count(time.saturating_sub(trace.t0));
                }
            }
            count_gaps(block, trace);
        }
        let is_slow = total >= trace.threshold();
        let generation = trace.generation;
        let done = record::Done {
            trace,
            thread: lane.index,
            end: now,
            is_slow,
            index_of: |mark| index_of(mark, generation),
        };

        lane.entry.recent.store_release(lane.recent.push(&done));
        if is_slow {
            lane.entry.slow.store_release(lane.slow.push(&done));
        }
        lane.change_current(|current| current.state.store_relaxed(0));
        trace.state = State::Idle;
        trace.points = 0;
    }
}

/// All gaps of a message that has ended; of publishes of one name in a row, only the buckets one by
/// one.
#[inline(always)]
fn count_gaps(block: &Block, trace: &Trace) {
    if trace.publishes == 0 {
        return;
    }
    let gaps = &block.metrics[GAP];
    let mut last = trace.logic_start;
    for row in trace.published().chunk_by(|(_, one), (_, next)| one.name == next.name) {
        let named = block.named(row[0].1);
        let (begin, mut longest) = (last, 0);
        for (time, _) in row {
            let gap = time - last;
            let bucket = bucket_of(gap);
            gaps.count_bucket(bucket);
            if let Some(named) = named {
                named.count_bucket(bucket);
            }
            longest = longest.max(gap);
            last = *time;
        }
        if let Some(named) = named {
            named.add(row.len() as u64, last - begin, longest);
        }
    }
    gaps.add(u64::from(trace.publishes), trace.last - trace.logic_start, trace.longest_gap);
}

impl Drop for Logic<'_> {
    fn drop(&mut self) {
        if let Some(lane) = &self.lane {
            lane.change_current(|current| current.state.store_relaxed(0));
        }
    }
}
