//! What a logic thread worked on before a message: the messages that it had to wait for.

use std::collections::{HashMap, VecDeque};

use model::MessageAhead;
use trace::reader::Record;

/// Messages of a thread that are remembered: as many as may wait behind a slow one.
const REMEMBERED: usize = 4096;

/// Nor more than so many of all threads together, 32 bytes each.
const REMEMBERED_OF_ALL: usize = 65_536;

/// Of those ahead of one message the longest are kept.
const KEPT: usize = 16;

/// The messages that each logic thread ended last, in time order.
#[derive(Default)]
pub(crate) struct Ended {
    of_threads: HashMap<u32, VecDeque<MessageAhead>>,
    count: usize,
}

impl Ended {
    pub fn add(&mut self, records: &[Record]) {
        for record in records {
            let ended = self.of_threads.entry(record.thread).or_default();
            let message = MessageAhead {
                flow: record.flow,
                id: record.id,
                logic_start_ns: record.logic_start,
                end_ns: record.end,
            };
            // The slow ones come in both rings, and those of one ring in time order.
            let place = ended.partition_point(|known| {
                (known.logic_start_ns, known.id) < (message.logic_start_ns, message.id)
            });
            if ended.get(place) != Some(&message) {
                ended.insert(place, message);
                self.count += 1;
            }
            if ended.len() > REMEMBERED || self.count > REMEMBERED_OF_ALL {
                ended.pop_front();
                self.count -= 1;
            }
        }
    }

    /// What the thread of this message worked on between its receipt and its logic.
    pub fn ahead_of(&self, record: &Record) -> Vec<MessageAhead> {
        let Some(ended) = self.of_threads.get(&record.thread) else { return Vec::new() };
        let wait = |m: &MessageAhead| {
            m.end_ns.min(record.logic_start).saturating_sub(m.logic_start_ns.max(record.t0))
        };
        let mut ahead: Vec<MessageAhead> = ended
            .iter()
            .filter(|m| m.logic_start_ns < record.logic_start && wait(m) > 0)
            .copied()
            .collect();
        ahead.sort_by_key(|m| std::cmp::Reverse(wait(m)));
        ahead.truncate(KEPT);
        ahead.sort_by_key(|m| m.logic_start_ns);
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, t0: u64, logic_start: u64, end: u64) -> Record {
        Record {
            number: id,
            id,
            flow: 1,
            is_slow: false,
            t0,
            logic_start,
            end,
            depth: None,
            thread: 3,
            publishes: 0,
            longest_gap: 0,
            points: Vec::new(),
            published: Vec::new(),
        }
    }

    #[test]
    fn a_message_waits_for_those_whose_logic_ran_after_its_receipt() {
        let mut ended = Ended::default();
        let last = record(4, 45, 90, 95);
        // 1 ended before 4 was received; 3 is slow and comes in both rings.
        ended.add(&[record(1, 0, 5, 40), record(2, 30, 40, 50), record(3, 40, 50, 90)]);
        ended.add(&[record(3, 40, 50, 90), last.clone()]);
        let ahead: Vec<u64> = ended.ahead_of(&last).iter().map(|m| m.id).collect();
        assert_eq!(ahead, [2, 3]);
        assert!(ended.ahead_of(&Record { thread: 4, ..last }).is_empty(), "another thread's");
    }

    #[test]
    fn of_many_the_longest_are_kept_in_time_order() {
        let mut ended = Ended::default();
        let mut at = 10;
        for id in 0..6000 {
            let length = if id % 400 == 0 { 50 } else { 1 };
            ended.add(&[record(id, 0, at, at + length)]);
            at += length;
        }
        let last = record(9999, 5, at, at + 1);
        ended.add(std::slice::from_ref(&last));
        let ahead = ended.ahead_of(&last);
        assert_eq!(ahead.len(), KEPT);
        assert!(ahead.is_sorted_by_key(|m| m.logic_start_ns));
        // 4,096 are remembered: of the long ones those from 2,000 on.
        assert_eq!(ahead.iter().filter(|m| m.id % 400 == 0).count(), 10);
    }
}
