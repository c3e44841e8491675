//! The logic of a message: what it publishes, and its end, which writes everything.

use super::flow::Publish;
use super::record;
use super::thread::{Lane, index_of};
use super::trace::{State, Trace};
use crate::clock;
use crate::layout::{Block, METRICS};
use crate::layout::{GAP, INFRASTRUCTURE, LOGIC, TO_POINT, TO_PUBLISH, TOTAL};

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
                    block.metrics[GAP].count_bucket(gap);
                    count_named(block, publish, gap, now);
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
            metrics[TOTAL].count(total, now);
            metrics[INFRASTRUCTURE].count(trace.logic_start - trace.t0, now);
            metrics[LOGIC].count(now - trace.logic_start, now);
            for (mark, metric) in trace.marks().iter().zip(&metrics[TO_POINT..TO_PUBLISH]) {
                let time = mark.time.load_acquire();
                if time != 0 {
                    metric.count(time.saturating_sub(trace.t0), now);
                }
            }
            count_gaps(block, trace, now);
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

/// All gaps of a message that has ended. Count, sum and maximum of them are known by now.
#[inline(always)]
fn count_gaps(block: &Block, trace: &Trace, now: u64) {
    if trace.publishes == 0 {
        return;
    }
    let gaps = &block.metrics[GAP];
    let mut last = trace.logic_start;
    for (time, publish) in trace.published() {
        gaps.count_bucket(time - last);
        count_named(block, *publish, time - last, now);
        last = *time;
    }
    gaps.add(u64::from(trace.publishes), trace.last - trace.logic_start, trace.longest_gap, now);
}

#[inline(always)]
fn count_named(block: &Block, publish: Publish, gap: u64, now: u64) {
    if publish.name != 0 {
        let metric = (TO_PUBLISH + publish.index as usize).min(METRICS - 1);
        block.metrics[metric].count(gap, now);
    }
}

impl Drop for Logic<'_> {
    fn drop(&mut self) {
        if let Some(lane) = &self.lane {
            lane.change_current(|current| current.state.store_relaxed(0));
        }
    }
}
