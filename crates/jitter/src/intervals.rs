//! What was recorded of the threads whose ticks are judged, as far as it lies in the latest ticks:
//! between the moment a tick was intended for and the one it was served.

use std::collections::{HashMap, VecDeque};

use model::{Batch, JitterSeries, LateTick, Outlier, OutlierKind};

use crate::Series;

/// Times off the CPU that wait for their tick, the newest: about 100 MB.
const WAITING: usize = 100_000;

/// A tick of a series: the number of the series and its own.
type TickOf = (usize, u64);

/// Times off the CPU, and those of them that made ticks late.
#[derive(Debug, Default)]
pub struct Intervals {
    waiting: VecDeque<Outlier>,
    found: HashMap<TickOf, Vec<Outlier>>,
}

impl Intervals {
    /// Adds what came since the last time.
    pub fn add(&mut self, batch: Batch) {
        let off_cpu = batch
            .outliers
            .into_iter()
            .filter(|o| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue))
            // Where it slept is not what made it late.
            .map(|o| Outlier { kernel_stack: None, user_stack: None, ..o });
        self.waiting.extend(off_cpu);
        let too_many = self.waiting.len().saturating_sub(WAITING);
        self.waiting.drain(..too_many);
    }

    /// Finds those of the latest ticks so far. Ticks and intervals come late, and not in order.
    pub fn find(&mut self, series: &[Series]) {
        for (place, series) in series.iter().map(Series::summary).enumerate() {
            for tick in &series.worst {
                let key = (place, tick.number);
                if !self.found.contains_key(&key)
                    && let Some(found) = self.of_tick(tick, series)
                {
                    self.found.insert(key, found);
                }
            }
        }
    }

    /// Those of the latest ticks of all, each once.
    pub fn of_latest(mut self, series: &[Series]) -> Vec<Outlier> {
        self.find(series);
        let mut all: Vec<Outlier> = series
            .iter()
            .map(Series::summary)
            .enumerate()
            .flat_map(|(place, s)| s.worst.iter().map(move |tick| (place, tick.number)))
            .filter_map(|key| self.found.remove(&key))
            .flatten()
            .collect();
        all.sort_by_key(|o| (o.start_ns, o.tid));
        all.dedup_by_key(|o| (o.start_ns, o.tid));
        all
    }

    /// Of several threads it is the one that came to a CPU last before the tick was served.
    fn of_tick(&self, tick: &LateTick, series: &JitterSeries) -> Option<Vec<Outlier>> {
        let thread = series.thread.as_ref().map(|thread| thread.tid);
        let (from, to) = (tick.intended_ns, tick.served_ns());
        let within = |o: &&Outlier| {
            o.start_ns < to && o.end_ns() > from && thread.is_none_or(|tid| o.tid == tid)
        };
        let within: Vec<&Outlier> = self.waiting.iter().filter(within).collect();
        let ended = within.iter().filter(|o| o.end_ns() <= to);
        let tid = ended.max_by_key(|o| o.end_ns())?.tid;
        Some(within.into_iter().filter(|o| o.tid == tid).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use model::{Accounts, JitterThread};

    use super::*;

    fn interval(tid: u32, start_ns: u64, end_ns: u64) -> Outlier {
        Outlier {
            kind: OutlierKind::OffCpu,
            tid,
            tgid: 7,
            comm: "ticker".into(),
            cpu: 0,
            start_ns,
            duration_ns: end_ns - start_ns,
            syscall: None,
            blocked: None,
            breakdown: Accounts::default(),
            object: 0,
            fault_ip: None,
            kernel_stack: None,
            user_stack: None,
            waker: None,
            ran_instead: Vec::new(),
            holder: None,
            timer: None,
            interrupts: None,
            first_call: None,
        }
    }

    fn batch(outliers: Vec<Outlier>) -> Batch {
        Batch { outliers, ..Batch::default() }
    }

    #[test]
    fn those_of_a_late_tick_stay_however_many_come_after_it() {
        let mut series = [Series::new("made up", 100, None)];
        series[0].begin(JitterThread { tid: 7, ..JitterThread::default() }, 0);
        series[0].tick(1_000, 1_500);
        let mut intervals = Intervals::default();
        intervals.add(batch(vec![interval(7, 0, 900), interval(7, 950, 1_400)]));
        intervals.add(batch(vec![interval(8, 1_000, 1_450)]));
        intervals.find(&series);
        let later = (0..WAITING as u64).map(|n| interval(7, 10_000 + n, 10_001 + n));
        intervals.add(batch(later.collect()));
        assert_eq!(intervals.of_latest(&series), [interval(7, 950, 1_400)]);
    }

    #[test]
    fn of_a_program_it_is_the_thread_that_ran_last_before_the_tick() {
        let mut series = [Series::new("program", 0, None)];
        series[0].tick(1_000, 1_500);
        let mut intervals = Intervals::default();
        let other = interval(8, 1_000, 1_600);
        intervals.add(batch(vec![interval(9, 500, 1_100), interval(7, 950, 1_400), other]));
        assert_eq!(intervals.of_latest(&series), [interval(7, 950, 1_400)]);
        assert!(Intervals::default().of_latest(&series).is_empty());
    }
}
