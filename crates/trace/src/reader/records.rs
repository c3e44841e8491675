//! The rings: what is new in them since the last look, whole or not shown.

use std::mem::{offset_of, size_of};

use super::error::{ReadError, refused};
use super::header::Table;
use super::source::{Copied, Entry, Source};
use super::tables::Flow;
use crate::layout::{self, IS_SLOW, Mark, POINTS, PUBLISHES, UNKNOWN};

/// A message that has ended, with its breakdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// How many its thread had written to this ring before it.
    pub number: u64,
    /// The program's own id.
    pub id: u64,
    /// Id of its flow.
    pub flow: u32,
    /// Whether it took as long as the threshold.
    pub is_slow: bool,
    /// When it was received.
    pub t0: u64,
    /// When its logic began.
    pub logic_start: u64,
    /// When it ended.
    pub end: u64,
    /// Messages that waited behind it when its logic began.
    pub depth: Option<u32>,
    /// Index of the thread that ran the logic.
    pub thread: u32,
    /// All publishes, also those that are not kept.
    pub publishes: u32,
    /// The longest time between two publishes, or logic start and the first.
    pub longest_gap: u64,
    /// The infrastructure points that were marked.
    pub points: Vec<PointMark>,
    /// The first 16 publishes.
    pub published: Vec<PublishMark>,
}

/// An infrastructure point that was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointMark {
    /// Its place among the points of the flow.
    pub point: u32,
    /// When.
    pub time: u64,
    /// Index of the thread that marked it, if it was registered.
    pub thread: Option<u32>,
}

/// A publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishMark {
    /// When.
    pub time: u64,
    /// Its place among the publishes of the flow, if it has a name.
    pub publish: Option<u32>,
}

/// What was not shown, and why. Sums since the reader was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records that were being written when they were read, or when the writer died.
    pub torn: u64,
    /// Records whose place a later one took before they were read.
    pub overwritten: u64,
    /// Marks outside of their message's time.
    pub marks: u64,
}

/// Records that are copied at once.
const AT_ONCE: u64 = 1024;

/// A ring of one thread, and how far it has been read.
pub(crate) struct Ring {
    /// Offset of its first record.
    pub offset: u64,
    pub stride: u64,
    pub records: u64,
    /// Index of its thread.
    pub thread: u32,
    pub threads: u32,
}

impl Ring {
    pub fn of(table: &Table, records: usize, thread: u32, threads: usize) -> Ring {
        Ring {
            offset: table.at(thread as usize * records),
            stride: table.stride,
            records: records as u64,
            thread,
            threads: threads as u32,
        }
    }

    /// The records from number `seen` to below `written`, which was read before this is called; of
    /// more than `room` the first. Gives also up to which number.
    /// `flows` must hold all that were there when `written` was read.
    pub fn look(
        &self,
        source: &impl Source,
        (seen, written): (u64, u64),
        room: usize,
        flows: &[Flow],
        losses: &mut Losses,
    ) -> Result<(Vec<Record>, u64), ReadError> {
        let first = seen.max(written.saturating_sub(self.records));
        losses.overwritten = losses.overwritten.saturating_add(first - seen);
        let end = written.min(first.saturating_add(room as u64));
        let mut records = Vec::with_capacity((end - first) as usize);
        let mut next = first;
        while next < end {
            // Those that lie one after the other in the file.
            let in_a_row = (self.records - next % self.records).min(AT_ONCE);
            let to = end.min(next.saturating_add(in_a_row));
            self.copy(source, next..to, flows, losses, &mut records)?;
            next = to;
        }
        Ok((records, end))
    }

    /// The records with these numbers, which lie one after the other.
    fn copy(
        &self,
        source: &impl Source,
        numbers: std::ops::Range<u64>,
        flows: &[Flow],
        losses: &mut Losses,
        records: &mut Vec<Record>,
    ) -> Result<(), ReadError> {
        let offset = self.offset + numbers.start % self.records * self.stride;
        let bytes = ((numbers.end - numbers.start) * self.stride) as usize;
        let whole = Copied::acquire(source, offset, bytes)?;
        let again = Copied::acquire(source, offset, bytes)?;
        let stride = self.stride as usize;
        for number in numbers.clone() {
            let slot = (number - numbers.start) as usize * stride;
            let entry = whole.entry().part(slot, size_of::<layout::Record>());
            let head_after = again.entry().part(slot, 8).u64(0);
            let head = entry.u64(offset_of!(layout::Record, head));
            let tail = entry.u64(offset_of!(layout::Record, tail));
            if [head, tail, head_after].iter().all(|sequence| *sequence == number + 1) {
                records.push(self.record(entry, number, flows, losses)?);
            } else if head.max(head_after) > number + 1 {
                losses.overwritten = losses.overwritten.saturating_add(1);
            } else {
                losses.torn += 1;
            }
        }
        Ok(())
    }

    /// A record that is whole, if it is also sound.
    fn record(
        &self,
        entry: Entry,
        number: u64,
        flows: &[Flow],
        losses: &mut Losses,
    ) -> Result<Record, ReadError> {
        let wrong = |what: &str| Err(refused(entry.offset, format!("a record {what}")));
        let t0 = entry.u64(offset_of!(layout::Record, t0));
        let logic_start = entry.u64(offset_of!(layout::Record, logic_start));
        let end = entry.u64(offset_of!(layout::Record, end));
        let flow = entry.u32(offset_of!(layout::Record, flow));
        let longest_gap = entry.u64(offset_of!(layout::Record, longest_gap));
        if !(t0 <= logic_start && logic_start <= end) {
            return wrong("whose times run backwards");
        }
        if longest_gap > end - logic_start {
            return wrong("with a gap that is longer than its logic");
        }
        if entry.u32(offset_of!(layout::Record, thread)) != self.thread {
            return wrong("of another thread than its ring");
        }
        let Some(known) = (flow as usize).checked_sub(1).and_then(|index| flows.get(index)) else {
            return wrong("of a flow that does not exist");
        };
        let publishes = entry.u32(offset_of!(layout::Record, publishes));
        let mut points = Vec::with_capacity(known.points.len());
        for point in 0..known.points.len().min(POINTS) {
            let (time, thread) = mark(entry, offset_of!(layout::Record, point), point);
            if time == 0 {
                continue;
            }
            if !(t0..=end).contains(&time) || (thread >= self.threads && thread != UNKNOWN) {
                losses.marks += 1;
                continue;
            }
            let thread = (thread != UNKNOWN).then_some(thread);
            points.push(PointMark { point: point as u32, time, thread });
        }
        let mut published = Vec::with_capacity(PUBLISHES.min(publishes as usize));
        let mut before = logic_start;
        for index in 0..PUBLISHES.min(publishes as usize) {
            let (time, name) = mark(entry, offset_of!(layout::Record, publish), index);
            if !(before..=end).contains(&time) {
                losses.marks += 1;
                continue;
            }
            before = time;
            let place = known.publish_ids.iter().position(|id| *id == name);
            published.push(PublishMark { time, publish: place.map(|place| place as u32) });
        }
        let depth = entry.u32(offset_of!(layout::Record, depth));
        Ok(Record {
            number,
            id: entry.u64(offset_of!(layout::Record, id)),
            flow,
            is_slow: entry.u32(offset_of!(layout::Record, flags)) & IS_SLOW != 0,
            t0,
            logic_start,
            end,
            depth: (depth != UNKNOWN).then_some(depth),
            thread: self.thread,
            publishes,
            longest_gap,
            points,
            published,
        })
    }
}

/// Time and thread or name of a cell.
fn mark(entry: Entry, cells: usize, index: usize) -> (u64, u32) {
    let cell = entry.part(cells + index * size_of::<Mark>(), size_of::<Mark>());
    (cell.u64(offset_of!(Mark, time)), cell.u32(offset_of!(Mark, what)))
}
